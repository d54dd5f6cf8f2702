"""Serves health checks over HTTP, for Kubernetes or a load balancer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus

from aioqless.cli.http_server import Respond, Response, serve_http
from aioqless.runtime.log import log


@asynccontextmanager
async def serve_health_checks(
    address: str, live: Callable[[], bool], ready: Callable[[], bool]
) -> AsyncIterator[None]:
    """Answer `GET /live` and `GET /ready` with 200 or 503 while in the block.

    Raises:
        ValueError: if the address is malformed.
        AioqlessError: if the port is taken.
    """
    routes = {"/live": _respond_by(live), "/ready": _respond_by(ready)}
    async with serve_http("health", "health checks", address, routes) as port:
        log.info("health.listening", port=port)
        yield


def _respond_by(check: Callable[[], bool]) -> Respond:
    async def respond(_accept: str) -> Response:
        status = HTTPStatus.OK if check() else HTTPStatus.SERVICE_UNAVAILABLE
        return Response(status, f"{status.value} {status.phrase}\n".encode())

    return respond
