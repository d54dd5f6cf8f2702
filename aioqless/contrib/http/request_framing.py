"""Refuses requests whose end a proxy may see elsewhere than the server does."""

from __future__ import annotations

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send


class FramingMiddleware:
    """Refuses requests with both Content-Length and Transfer-Encoding, and closes the connection.

    A proxy in front that goes by the other header would take the rest of the body for the next
    request, or the next request of another client for the body.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request."""
        app = self._app
        if scope["type"] == "http" and (
            {b"content-length", b"transfer-encoding"} <= {name for name, _ in scope["headers"]}
        ):
            why = "A request must not have both Content-Length and Transfer-Encoding.\n"
            app = PlainTextResponse(why, 400, {"Connection": "close"})
        await app(scope, receive, send)
