"""The same small application in four frameworks.

A worker runs in its lifespan, `POST /` puts a job, `GET /` answers.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import aiohttp.web
import fastapi
import litestar
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

Lifespan: TypeAlias = Callable[[], AbstractAsyncContextManager[None]]
Put: TypeAlias = Callable[[], Awaitable[str]]


@dataclass
class Host:
    """A server that answers."""

    url: str
    # shut down as SIGTERM does; returns when the server has ended
    stop: Callable[[], Awaitable[None]]


def with_starlette(lifespan: Lifespan, put: Put) -> Starlette:
    async def post(request: Request) -> PlainTextResponse:
        return PlainTextResponse(await put())

    async def get(request: Request) -> PlainTextResponse:
        return PlainTextResponse("here")

    return Starlette(
        routes=[Route("/", post, methods=["POST"]), Route("/", get)],
        lifespan=lambda app: lifespan(),
    )


def with_fastapi(lifespan: Lifespan, put: Put) -> fastapi.FastAPI:
    app = fastapi.FastAPI(lifespan=lambda app: lifespan())

    @app.post("/", response_class=fastapi.responses.PlainTextResponse)
    async def post() -> str:
        return await put()

    @app.get("/", response_class=fastapi.responses.PlainTextResponse)
    async def get() -> str:
        return "here"

    return app


def with_litestar(lifespan: Lifespan, put: Put) -> litestar.Litestar:
    @litestar.post("/", media_type=litestar.MediaType.TEXT)
    async def post() -> str:
        return await put()

    @litestar.get("/", media_type=litestar.MediaType.TEXT)
    async def get() -> str:
        return "here"

    return litestar.Litestar([post, get], lifespan=[lambda app: lifespan()])


@asynccontextmanager
async def serve_asgi(app: Any) -> AsyncIterator[Host]:
    """Serve an ASGI application with uvicorn on this event loop."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = _Server(
            uvicorn.Config(
                app, log_level="critical", ws="none", lifespan="on", timeout_graceful_shutdown=1
            )
        )
        running = asyncio.create_task(server.run_on(listening))

        async def stop() -> None:
            server.should_exit = True
            await running

        await server.ready.wait()
        try:
            yield Host(f"http://127.0.0.1:{listening.getsockname()[1]}", stop)
        finally:
            await stop()


class _Server(uvicorn.Server):
    """A server that leaves signals to pytest."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    async def run_on(self, listening: socket.socket) -> None:
        await self._serve([listening])


@asynccontextmanager
async def serve_aiohttp(lifespan: Lifespan, put: Put) -> AsyncIterator[Host]:
    """Serve with aiohttp's own server on this event loop."""

    async def post(request: aiohttp.web.Request) -> aiohttp.web.Response:
        return aiohttp.web.Response(text=await put())

    async def get(request: aiohttp.web.Request) -> aiohttp.web.Response:
        return aiohttp.web.Response(text="here")

    async def context(app: aiohttp.web.Application) -> AsyncIterator[None]:
        async with lifespan():
            yield

    app = aiohttp.web.Application()
    app.add_routes([aiohttp.web.post("/", post), aiohttp.web.get("/", get)])
    app.cleanup_ctx.append(context)
    runner = aiohttp.web.AppRunner(app)
    await runner.setup()
    try:
        site = aiohttp.web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        (address,) = runner.addresses
        yield Host(f"http://127.0.0.1:{address[1]}", runner.cleanup)
    finally:
        await runner.cleanup()


HOSTS: dict[str, Callable[[Lifespan, Put], AbstractAsyncContextManager[Host]]] = {
    "starlette": lambda lifespan, put: serve_asgi(with_starlette(lifespan, put)),
    "fastapi": lambda lifespan, put: serve_asgi(with_fastapi(lifespan, put)),
    "litestar": lambda lifespan, put: serve_asgi(with_litestar(lifespan, put)),
    "aiohttp": serve_aiohttp,
}
