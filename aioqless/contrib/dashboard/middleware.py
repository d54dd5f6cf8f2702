"""The door: nothing gets to a page or an act but past it.

Every answer carries the headers that keep scripts of others out. Who isn't known is asked to log
in. A change must come from a page of this dashboard, and carry the token of its browser. Without
users, only this machine is served, under names that only this machine has, and there only browsers
that were opened with the start-up token: behind a reverse proxy, everybody seems to be on this
machine."""

from __future__ import annotations

import hmac
import inspect
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import aioqless.contrib.dashboard.audit_log as trail
from aioqless.contrib.dashboard.access import Identity
from aioqless.contrib.dashboard.page_request import address, parameters
from aioqless.contrib.dashboard.state import COOKIE, LASTS, LOCAL, Dashboard
from aioqless.contrib.http_sessions import Session, body_of, is_from_this_machine, is_of_same_origin
from aioqless.log import log
from aioqless.redis.connection import AWAY

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
    """Who is at the door: a browser, and whoever is known to use it."""

    dashboard: Dashboard
    session: Session
    who: Identity | None


def visit_of(request: Request) -> Visit:
    visit: Visit = request.scope["aioqless.contrib.dashboard"]
    return visit


async def change_of(request: Request) -> dict[str, str]:
    """The form of a change. Raises Refused unless it carries the token of its browser."""
    visit = visit_of(request)
    if (
        request.headers.get("content-type", "").partition(";")[0]
        != "application/x-www-form-urlencoded"
    ):
        raise Refused(415, "A change is sent as a form.")
    try:
        body = await body_of(request, LARGEST)
    except TimeoutError:
        raise Refused(408, "The form came too slowly.") from None
    if body is None:
        raise Refused(413, "That is too much for a form.")
    try:
        form = parameters(body.decode("ascii"))
    except ValueError:
        raise Refused(400, "That is no form of this dashboard.") from None
    if not visit.dashboard.sessions.is_token(visit.session, form.pop("token", "")):
        raise Refused(403, "The page was too old to change anything: load it again.")
    return form


class Guard:
    """Lets requests in, or answers them itself."""

    def __init__(self, app: ASGIApp, dashboard: Dashboard) -> None:
        self._app = app
        self._dashboard = dashboard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        path = within(request)
        known = self._dashboard.sessions.read(request.cookies.get(_name(request)))
        session = known or self._dashboard.sessions.begin()
        keep = (
            self._cookie(request, session)
            if not known and not path.startswith("/static/")
            else None
        )
        try:
            answer = await self._answer(request, path, session)
            await (answer or self._app)(scope, receive, _guarded(send, None if answer else keep))
        except AWAY as away:
            text = f"Redis can't be reached: {away}\nThis page comes back when it is there again.\n"
            await PlainTextResponse(text, 503, {"Retry-After": "3"})(
                scope, receive, _guarded(send, None)
            )
        except Refused as refused:
            log.warning(
                "web.refused",
                why=str(refused),
                client=request.client.host if request.client else "",
                path=path,
            )
            await PlainTextResponse(f"{refused}\n", refused.status)(
                scope, receive, _guarded(send, None)
            )

    async def _answer(self, request: Request, path: str, session: Session) -> Response | None:
        """What somebody is told who doesn't get in, unless that is a plain refusal."""
        if self._dashboard.access.open and not is_from_this_machine(request):
            raise Refused(
                403,
                "Without users this dashboard is for this machine alone, as http://localhost, and without a reverse proxy. "
                "Give it users to let others in.",
            )
        if request.method not in ("GET", "HEAD"):
            if request.method != "POST":
                raise Refused(405, "Only GET and POST are known here.")
            if not is_of_same_origin(request):
                raise Refused(403, "A change must come from a page of this dashboard.")
        who = await self._known(request, session)
        request.scope["aioqless.contrib.dashboard"] = Visit(self._dashboard, session, who)
        if (
            self._dashboard.access.open
            and request.method == "GET"
            and (token := request.query_params.get("token"))
        ):
            return await self._enter(request, path, token, who)
        return (
            self._ask_who(request, path)
            if who is None and path != "/login" and not path.startswith("/static/")
            else None
        )

    async def _enter(
        self, request: Request, path: str, token: str, who: Identity | None
    ) -> Response:
        """Answer the start-up link: log in, and go to the same page without the token, which would
        stay in the browser's history."""
        given = {name: value for name, value in parameters_of(request).items() if name != "token"}
        if path == "/login":
            path, given = "/", {}
        answer = RedirectResponse(request.scope.get("root_path", "") + address(path, **given), 303)
        if who is None:
            if not hmac.compare_digest(
                token.encode("utf-8", "replace"), self._dashboard.startup_token.encode()
            ):
                trail.log_refused(
                    LOCAL,
                    request.client.host if request.client else "",
                    "the link's token is wrong",
                )
                return self._ask_who(request, "/")
            answer.headers["Set-Cookie"] = await open_session(request, LOCAL)
        return answer

    async def _known(self, request: Request, session: Session) -> Identity | None:
        authenticate = self._dashboard.access.authenticate
        if authenticate is None:
            return await self._dashboard.user_of(session)
        said = authenticate(request)
        return await said if inspect.isawaitable(said) else said

    def _ask_who(self, request: Request, path: str) -> Response:
        if self._dashboard.access.authenticate:
            raise Refused(403, "You aren't allowed to see this dashboard.")
        if request.method != "GET" or path == "/live":
            raise Refused(401, "Log in first.")
        to = address(
            "/login",
            to=address(
                path,
                **{
                    name: value for name, value in parameters_of(request).items() if name != "token"
                },
            ),
        )
        return RedirectResponse(request.scope.get("root_path", "") + to, 303)

    def _cookie(self, request: Request, session: Session) -> str:
        return cookie(self._dashboard.sessions.cookie(session), request)


async def open_session(request: Request, name: str) -> str:
    """Log a user in; returns the header that lets the browser keep the session."""
    dashboard = visit_of(request).dashboard
    session = await dashboard.sessions.open(name, dashboard.proof_of(name) or "")
    await trail.add_login(
        dashboard.client, name, "log-in", request.client.host if request.client else "", "done"
    )
    return cookie(dashboard.sessions.cookie(session), request)


def parameters_of(request: Request) -> dict[str, str]:
    """The parameters of a request's address; none where there are too many."""
    try:
        return parameters(request.url.query)
    except ValueError:
        return {}


def cookie(value: str, request: Request, lasts: float = LASTS) -> str:
    """The header that lets a browser keep a session, out of scripts' reach and for this dashboard
    alone."""
    path = request.scope.get("root_path", "") or "/"
    kept = [
        f"{_name(request)}={value}",
        f"Path={path}",
        f"Max-Age={lasts:.0f}",
        "HttpOnly",
        "SameSite=Lax",
    ]
    return "; ".join([*kept, "Secure"] if request.url.scheme == "https" else kept)


def _name(request: Request) -> str:
    """A cookie is sent to all ports of a host; so that dashboards there don't end each other's
    sessions, its name has the port."""
    port = request.headers.get("host", "").rpartition(":")[2]
    return f"{COOKIE}-{port}" if port.isascii() and port.isdigit() else COOKIE


def within(request: Request) -> str:
    """The path within the dashboard, wherever it is mounted."""
    path: str = request.scope["path"]
    return path.removeprefix(request.scope.get("root_path", "")) or "/"


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
