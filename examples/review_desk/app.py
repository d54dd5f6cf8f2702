"""The application: a task queue with its API, the page, and a worker in the same process."""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Message, Receive, Scope, Send

import aioqless
from aioqless.contrib.http import Identity, create_api
from aioqless.contrib.human_tasks import ReservationPolicy, TaskQueue
from aioqless.contrib.human_tasks.api import task_router

from . import jobs, library

STATIC = Path(__file__).parent / "static"
SETTINGS = aioqless.Settings(queues=(jobs.READ, jobs.COUNT), concurrency=4, shutdown_timeout=5)
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'",
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
}


def application(link_token: str, *, limit: float = 90) -> Starlette:
    """Create the application; a person has `limit` seconds for an item."""
    client = aioqless.Client()
    desk = TaskQueue(
        client,
        jobs.REVIEW,
        ReservationPolicy(limit=limit, max_limit=max(limit, 600), next=jobs.COUNT),
    )

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[dict[str, Any]]:
        async with client, aioqless.Worker(client, jobs, settings=SETTINGS):
            await put_all(client)
            yield {"client": client}

    routes = [
        Mount(
            "/people",
            create_api(
                task_router({"docs": desk}),
                identify=lambda request: identify(request, link_token),
                title="A desk for docstrings",
            ),
        ),
        Route("/progress", progress),
        Route("/", page),
        Mount("/static", _WithHeaders(StaticFiles(directory=STATIC))),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


def identify(request: Request, link_token: str) -> Identity | None:
    """Return who has the printed link, under the name that they have chosen."""
    sent = request.headers.get("x-link-token", "").encode()
    if not hmac.compare_digest(sent, link_token.encode()):
        return None
    return Identity(unquote(request.headers.get("x-name", "")), may_reserve=["docs"])


async def put_all(client: aioqless.Client) -> None:
    """Put a job for each item; jobs of an earlier start are kept."""
    new = (
        aioqless.NewJob(
            jobs.docstring, {"name": name}, jid=f"docstring-{name}", tags=["docs"], if_exists="keep"
        )
        for name in library.names()
    )
    await client.queue(jobs.READ).put_many(new)


async def page(_request: Request) -> Response:
    return FileResponse(STATIC / "index.html", headers=HEADERS)


async def progress(request: Request) -> Response:
    """Count completed items by label and person, and how often the machine guessed right."""
    client: aioqless.Client = request.state.client
    found = await client.jobs.multiget(*await client.jobs.complete_jids(count=1000))
    done = [job for job in found if job.klass == jobs.docstring.klass and "answer" in job.data]
    return JSONResponse(
        {
            "total": len(library.names()),
            "done": len(done),
            "agreed": sum(job.data["agreed"] for job in done),
            "labels": {
                label: sum(job.data["answer"]["label"] == label for job in done)
                for label in library.LABELS
            },
            "people": dict(Counter(reviewer(job) for job in done).most_common(8)),
        },
        headers=HEADERS,
    )


def reviewer(job: aioqless.JobRecord) -> str:
    """Return the reviewer: the worker of that stage, without the session."""
    return next(
        (
            stage["worker"].partition("@")[0]
            for stage in job.history
            if stage.get("q") == jobs.REVIEW and "worker" in stage
        ),
        "?",
    )


class _WithHeaders:
    """Serves files with the headers of the page."""

    def __init__(self, files: StaticFiles) -> None:
        self._files = files

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message["headers"],
                    *((name.lower().encode(), value.encode()) for name, value in HEADERS.items()),
                ]
            await send(message)

        await self._files(scope, receive, with_headers)
