"""The door: nothing gets to a page or an act but past it.

Every answer carries the headers that keep scripts of others out. Who isn't known is asked to log in. A change must come from a page of
this dashboard, and carry the token of its browser. Where nobody needs to be known, nobody but this machine is let in, under names that
only this machine has, so that no website can pretend to be it.
"""

from __future__ import annotations

import inspect
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aioqless.log import log
from aioqless.web.access import Identity, Role
from aioqless.web.asked import address, parameters
from aioqless.web.sessions import COOKIE, LASTS, Session

if TYPE_CHECKING:
    from aioqless.web.board import Board

LOOPBACK = ("127.", "::1", "localhost", "::ffff:127.")
FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
LARGEST = 8 << 20  # bytes of a form: data of 1 MiB are longer when they are sent as one
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Refused(Exception):
    """A request that doesn't get in, with the status and the reason."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


@dataclass(frozen=True)
class Visit:
    """Who is at the door: a browser, whoever is known to use it, and what it sends."""

    session: Session
    who: Identity | None
    form: dict[str, str]


def visit_of(request: Request) -> Visit:
    visit: Visit = request.scope["aioqless.web"]
    return visit


class Guard:
    """Lets requests in, or answers them itself."""

    def __init__(self, app: ASGIApp, board: Board) -> None:
        self._app = app
        self._board = board

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        path = within(request)
        session = self._board.sessions.read(request.cookies.get(COOKIE))
        fresh = session is None
        session = session or self._board.sessions.begin()
        answer: Response | None = None
        try:
            if self._board.access.open:
                from_this_machine(request)
            who = await self._known(request, session)
            form: dict[str, str] = {}
            if request.method not in ("GET", "HEAD"):
                form, body = await self._change(request, session)
                receive = _heard_again(body, receive)
            scope["aioqless.web"] = Visit(session, who, form)
            if who is None and path != "/login" and not path.startswith("/static/"):
                answer = self._ask_who(request, path)
        except Refused as refused:
            log.warning("web.refused", why=str(refused), client=request.client.host if request.client else "", path=path)
            answer = PlainTextResponse(f"{refused}\n", refused.status)
        keep = self._cookie(request, session) if fresh and answer is None and not path.startswith("/static/") else None
        await (answer or self._app)(scope, receive, _guarded(send, keep))

    async def _known(self, request: Request, session: Session) -> Identity | None:
        access = self._board.access
        if access.open:
            return Identity("local", Role.ADMIN)
        if access.authenticate is None:
            user = access.users.get(session.name)
            return Identity(user.name, user.role) if user else None
        said = access.authenticate(request)
        return await said if inspect.isawaitable(said) else said

    def _ask_who(self, request: Request, path: str) -> Response:
        if self._board.access.authenticate:
            raise Refused(403, "You aren't allowed to see this dashboard.")
        if request.method != "GET" or path == "/live":
            raise Refused(401, "Log in first.")
        to = address("/login", to=path + (f"?{request.url.query}" if request.url.query else ""))
        return RedirectResponse(request.scope.get("root_path", "") + to, 303)

    async def _change(self, request: Request, session: Session) -> tuple[dict[str, str], bytes]:
        """The form of a change that comes from our own page, and the bytes that it was read from."""
        if request.method != "POST":
            raise Refused(405, "Only GET and POST are known here.")
        same_origin(request)
        if request.headers.get("content-type", "").partition(";")[0] != "application/x-www-form-urlencoded":
            raise Refused(415, "A change is sent as a form.")
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > LARGEST:
                raise Refused(413, "That is too much for a form.")
        try:
            form = parameters(body.decode("ascii"))
        except ValueError:
            raise Refused(400, "That is no form of this dashboard.") from None
        if not self._board.sessions.is_token(session, form.pop("token", "")):
            raise Refused(403, "The page was too old to change anything: load it again.")
        return form, bytes(body)

    def _cookie(self, request: Request, session: Session) -> str:
        return cookie(self._board.sessions.cookie(session), request)


def cookie(value: str, request: Request, lasts: float = LASTS) -> str:
    """The header that lets a browser keep a session, out of scripts' reach and for this dashboard alone."""
    kept = [f"{COOKIE}={value}", f"Path={request.scope.get('root_path', '') or '/'}", f"Max-Age={lasts:.0f}", "HttpOnly", "SameSite=Lax"]
    return "; ".join([*kept, "Secure"] if request.url.scheme == "https" else kept)


def within(request: Request) -> str:
    """The path within the dashboard, wherever it is mounted."""
    path: str = request.scope["path"]
    return path.removeprefix(request.scope.get("root_path", "")) or "/"


def from_this_machine(request: Request) -> None:
    """Refuse whoever isn't known to be on this machine. A page of another origin may have led its own name here: so the name counts too."""
    server = request.scope.get("server") or ("", None)
    ends = [request.client.host if request.client else "", server[0] or ""]
    name = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    elsewhere = [end for end in ends if "." in end or ":" in end]
    if (
        any(not end.startswith(LOOPBACK) for end in elsewhere)
        or not is_loopback(name)
        or any(each in request.headers for each in FORWARDED)
    ):
        raise Refused(403, "Without users this dashboard is for this machine alone, as http://localhost. Give it users to let others in.")


def is_loopback(host: str) -> bool:
    return host == "localhost" or host.endswith(".localhost") or host.startswith("127.") or host == "::1"


def same_origin(request: Request) -> None:
    """Refuse a change that another page sends."""
    origin = request.headers.get("origin") or request.headers.get("referer") or ""
    if request.headers.get("sec-fetch-site", "same-origin") != "same-origin" or urlsplit(origin).netloc != request.headers.get("host", ""):
        raise Refused(403, "A change must come from a page of this dashboard.")


def _heard_again(body: bytes, receive: Receive) -> Receive:
    """What was read at the door may be read once more: what tells of errors, such as Sentry, would wait for it for ever."""
    left = [body]

    async def receive_again() -> Message:
        return {"type": "http.request", "body": left.pop(), "more_body": False} if left else await receive()

    return receive_again


def _guarded(send: Send, keep: str | None) -> Send:
    async def with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=_listed(message))
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            if keep and "set-cookie" not in headers:
                headers["Set-Cookie"] = keep
        await send(message)

    return with_headers


def _listed(message: Message) -> MutableMapping[str, Any]:
    message["headers"] = list(message.get("headers", ()))
    return message
