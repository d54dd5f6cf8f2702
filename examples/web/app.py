"""The application: a worker in its lifespan, a job from a request, its progress as events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.templating import Jinja2Templates
from starlette.types import Receive, Scope, Send

import aioqless

from . import jobs
from .drawing import PLACES

HERE = Path(__file__).parent
QUEUE = "pictures"
WIDTHS = {"small": 480, "large": 960}
SETTINGS = aioqless.Settings(queues=(QUEUE,), concurrency=2, shutdown_timeout=10)
HEADERS = {"Content-Security-Policy": "default-src 'self'", "Cache-Control": "no-store"}
templates = Jinja2Templates(HERE / "templates")


def application(*, with_worker: bool = True) -> Starlette:
    """Create the application, by default with a worker in the same process."""

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[dict[str, Any]]:
        async with (
            aioqless.Client() as client,
            aioqless.Worker(client, jobs, settings=SETTINGS) if with_worker else nullcontext(),
        ):
            yield {"client": client}  # each request has it as request.state.client

    jobs.FOLDER.mkdir(parents=True, exist_ok=True)
    routes = [
        Route("/", page),
        Route("/pictures", order, methods=["POST"]),
        Route("/pictures/{jid}", page),
        Route("/pictures/{jid}/events", events),
        Mount("/files", StaticFiles(directory=jobs.FOLDER)),
        Mount("/static", StaticFiles(directory=HERE / "static")),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


async def page(request: Request) -> Response:
    """Show the form, the requested picture, and the latest ones."""
    client: aioqless.Client = request.state.client
    job = await find_job(request) if request.path_params else None
    complete = await client.jobs.multiget(*await client.jobs.complete_jids(count=100))
    latest = [each for each in complete if each.klass == jobs.draw.klass][:6]
    shown = {
        "places": PLACES,
        "widths": WIDTHS,
        "job": job,
        "now": job and describe(job),
        "latest": latest,
    }
    return templates.TemplateResponse(request, "page.html", shown, headers=HEADERS)


async def order(request: Request) -> Response:
    """Put a job, and show its page."""
    form = parse_qs(str(await request.body(), "utf-8", "replace"))
    place, width = form.get("place", [""])[0], WIDTHS.get(form.get("size", ["small"])[0])
    if place not in PLACES or width is None:
        raise HTTPException(400, "There is no such place or size.")
    jid = await request.state.client.queue(QUEUE).put(jobs.draw.data(place=place, width=width))
    return RedirectResponse(f"/pictures/{jid}", 303)


async def events(request: Request) -> Response:
    """Stream the progress of a job.

    A browser reconnects by itself, and starts with the current progress.
    """
    job = await find_job(request)

    async def stream() -> AsyncIterator[str]:
        try:
            async for now in job.follow():
                yield f"data: {json.dumps(describe(now))}\n\n"
        except aioqless.NoSuchJob:
            canceled = {"state": "cancelled", "share": 0, "message": "", "file": None}
            yield f"data: {json.dumps(canceled)}\n\n"

    return Stream(stream(), headers=HEADERS)


class Stream(StreamingResponse):
    """An event stream that ends normally when a stopping server cancels it.

    Browsers reconnect when the server runs again.
    """

    media_type = "text/event-stream"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        except asyncio.CancelledError:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def find_job(request: Request) -> aioqless.JobRecord:
    """Return the job of the address, or respond with 404."""
    job: aioqless.JobRecord | None = await request.state.client.jobs.get(request.path_params["jid"])
    if job is None or job.klass != jobs.draw.klass:
        raise HTTPException(404, "There is no such picture, or no longer.")
    return job


def describe(job: aioqless.JobRecord) -> dict[str, Any]:
    """Return the fields that browsers get of a job."""
    file = jobs.FOLDER / f"{job.jid}.png"
    version = file.stat().st_mtime_ns if file.exists() else None
    return {
        "state": job.state,
        "share": 1
        if job.state == "complete"
        else job.last_progress.share
        if job.last_progress
        else 0,
        "message": job.failure.message
        if job.failure
        else job.last_progress.message
        if job.last_progress
        else "",
        "file": version and f"/files/{job.jid}.png?{version}",
    }
