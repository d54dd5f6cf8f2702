"""A small application: a worker runs in its lifespan, `POST /` puts a job, `GET /` answers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

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
    stop: Callable[[], Coroutine[Any, Any, None]]


def with_starlette(lifespan: Lifespan, put: Put) -> Starlette:
    async def post(request: Request) -> PlainTextResponse:
        return PlainTextResponse(await put())

    async def get(request: Request) -> PlainTextResponse:
        return PlainTextResponse("here")

    return Starlette(
        routes=[Route("/", post, methods=["POST"]), Route("/", get)],
        lifespan=lambda app: lifespan(),
    )


def serve(lifespan: Lifespan, put: Put) -> AbstractAsyncContextManager[Host]:
    """Serve the application."""
    return serve_asgi(with_starlette(lifespan, put))


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
