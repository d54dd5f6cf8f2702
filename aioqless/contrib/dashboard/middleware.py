"""ASGI middleware: authentication, CSRF and origin checks, security headers.

Each response carries headers that keep foreign scripts out. Browsers without a session are sent to
the login page. A change must come from a page of this dashboard and carry the token of its browser.
With a start-up link, only this machine is served, under names that only this machine has, and there
only browsers that opened the link: behind a reverse proxy, all clients seem to be on this machine.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aioqless.client import REDIS_UNAVAILABLE
from aioqless.contrib.dashboard.dashboard import Dashboard
from aioqless.contrib.dashboard.page_request import address, parse_parameters
from aioqless.contrib.http import (
    Identity,
    IdentityRefused,
    Role,
    Session,
    is_of_same_origin,
    read_body,
)
from aioqless.contrib.http.proxy_header import client_of
from aioqless.runtime.log import log

MAX_FORM = 8 << 20  # bytes: 1 MiB of job data is longer when it is form-encoded
MAX_LOGIN_FORM = 16 << 10  # anybody may send one
SCOPE_KEY = "aioqless.contrib.dashboard"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


OpenLink: TypeAlias = Callable[[Request, str, str], Awaitable[Response]]


class RequestRefused(Exception):
    """A request that is not admitted, with the HTTP status and the reason."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


@dataclass(frozen=True)
class RequestContext:
    """The browser session of an admitted request, and its user if one is logged in."""

    dashboard: Dashboard
    session: Session
    user: Identity | None


def context_of(request: Request) -> RequestContext:
    """Return the context that the middleware has attached to a request."""
    context: RequestContext = request.scope[SCOPE_KEY]
    return context


async def read_form(request: Request) -> dict[str, str]:
    """Read the form of a change; raise RequestRefused unless it has its browser's token."""
    context = context_of(request)
    content_type = request.headers.get("content-type", "").partition(";")[0]
    if content_type != "application/x-www-form-urlencoded":
        raise RequestRefused(415, "Send changes as application/x-www-form-urlencoded.")
    most = MAX_FORM if context.user else MAX_LOGIN_FORM
    try:
        body = await read_body(request, most)
    except TimeoutError:
        raise RequestRefused(408, "The request took too long. Try again.") from None
    if body is None:
        raise RequestRefused(413, f"The form is larger than {most >> 10:,} KiB.")
    try:
        form = parse_parameters(body.decode("ascii"))
    except ValueError:
        raise RequestRefused(400, "The form can't be read: it must be URL-encoded ASCII.") from None
    sessions = context.dashboard.identification.sessions
    if not sessions.is_token(context.session, form.pop("token", "")):
        raise RequestRefused(403, "This page has expired. Reload it and try again.")
    return form


class AccessMiddleware:
    """Admits a request to the app, or responds to it.

    `open_link` responds to a link with a token; it gets the address that the link leads to.
    """

    def __init__(self, app: ASGIApp, dashboard: Dashboard, open_link: OpenLink) -> None:
        self._app = app
        self._dashboard = dashboard
        self._open_link = open_link

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        path = path_of(request)
        sessions = self._dashboard.identification.sessions
        known = sessions.read(request)
        session = known or sessions.begin()
        cookie = None
        if not known and not path.startswith("/static/"):
            cookie = sessions.cookie(session, request)
        try:
            response = await self._check(request, path, session)
            secured = _secure(send, None if response else cookie)
            await (response or self._app)(scope, receive, secured)
        except REDIS_UNAVAILABLE as error:
            why = f": {error}" if SCOPE_KEY in scope and scope[SCOPE_KEY].user else ""
            text = f"Redis is unavailable{why}\nReload this page when it is available again.\n"
            await PlainTextResponse(text, 503, {"Retry-After": "3"})(
                scope, receive, _secure(send, None)
            )
        except (RequestRefused, IdentityRefused) as refused:
            log.warning(
                "web.request_refused", why=str(refused), client=client_of(request), path=path
            )
            await PlainTextResponse(f"{refused}\n", getattr(refused, "status", 403))(
                scope, receive, _secure(send, None)
            )

    async def _check(self, request: Request, path: str, session: Session) -> Response | None:
        """Return None to admit a request, or the response; raise RequestRefused."""
        identification = self._dashboard.identification
        if request.method not in ("GET", "HEAD"):
            if request.method != "POST":
                raise RequestRefused(405, "Method not allowed: use GET or POST.")
            if not is_of_same_origin(request):
                raise RequestRefused(
                    403,
                    "The Origin of this request does not match its Host. Behind a reverse proxy, "
                    "forward the Host header (nginx: proxy_set_header Host $http_host).",
                )
        user = await identification.find(request, session)
        if user and user.role == Role.NONE:
            user = None
        request.scope[SCOPE_KEY] = RequestContext(self._dashboard, session, user)
        tokens, token = identification.tokens, request.query_params.get("token")
        if tokens and tokens.local and token and _is_opened_link(request):
            return await self._open_link(request, token, _address_without_token(request, path))
        if user is None and path != "/login" and not path.startswith("/static/"):
            return self._redirect_to_login(request, path)
        return None

    def _redirect_to_login(self, request: Request, path: str) -> Response:
        if self._dashboard.identification.tokens is None:
            raise RequestRefused(
                403, "You need to sign in to this site, or permission to see this dashboard."
            )
        if request.method != "GET" or path == "/live":
            raise RequestRefused(401, "Sign in first.")
        to = address("/login", to=_address_without_token(request, path))
        return RedirectResponse(request.scope.get("root_path", "") + to, 303)


def path_of(request: Request) -> str:
    """Return the path within the dashboard, wherever it is mounted."""
    path: str = request.scope["path"]
    return path.removeprefix(request.scope.get("root_path", "")) or "/"


def _is_opened_link(request: Request) -> bool:
    """Return whether a user has opened a link.

    What a website embeds is none: it could sign a browser in with a token of its own.
    """
    return request.method == "GET" and request.headers.get("sec-fetch-dest", "document") == (
        "document"
    )


def _address_without_token(request: Request, path: str) -> str:
    """Return the requested address without a token, and without parameters if they are too many."""
    try:
        parameters = parse_parameters(request.url.query)
    except ValueError:
        parameters = {}
    return address(path, **{name: value for name, value in parameters.items() if name != "token"})


def _secure(send: Send, cookie: str | None) -> Send:
    """Add the security headers, and a cookie where the response sets none."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = list(message.get("headers", ()))
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            if cookie and "set-cookie" not in headers:
                headers["Set-Cookie"] = cookie
        await send(message)

    return send_with_headers
