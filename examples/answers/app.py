"""The web application: a page to ask on, and a page for each answer."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Route

import aioqless
from aioqless.contrib.output import server_sent_events

from .jobs import answer

PAGE = Path(__file__).with_name("page.html")


async def show(_: Request) -> Response:
    """Show the page to ask on, or that of an answer."""
    return FileResponse(PAGE)


async def ask(request: Request) -> Response:
    """Put the job, and go to the page of its answer."""
    form = parse_qs((await request.body()).decode())
    client: aioqless.Client = request.app.state.client
    jid = await client.put(answer.data(question=form["question"][0]))
    return RedirectResponse(f"/answers/{jid}", status_code=303)


async def output(request: Request) -> Response:
    """Stream the answer, from where the browser has it."""
    client: aioqless.Client = request.app.state.client
    after = request.headers.get("last-event-id")
    return server_sent_events(client.jobs.output(request.path_params["jid"], after=after))


@contextlib.asynccontextmanager
async def connected(app: Starlette) -> AsyncIterator[None]:
    """Connect a client while the application runs."""
    async with aioqless.Client() as client:
        app.state.client = client
        yield


app = Starlette(
    routes=[
        Route("/", show),
        Route("/answers", ask, methods=["POST"]),
        Route("/answers/{jid}", show),
        Route("/answers/{jid}/output", output),
    ],
    lifespan=connected,
)
