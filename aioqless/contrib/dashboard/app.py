"""The application: the table of routes, and create_app."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Scope
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

import aioqless.contrib.dashboard.audit_log as trail
from aioqless.client import Client
from aioqless.contrib.dashboard.access import Access, Identity, Role
from aioqless.contrib.dashboard.actions import ACTS, Doing
from aioqless.contrib.dashboard.actions.act import Done
from aioqless.contrib.dashboard.live import Stream
from aioqless.contrib.dashboard.login import Login, inside
from aioqless.contrib.dashboard.middleware import Guard, change_of, visit_of, within
from aioqless.contrib.dashboard.page_request import Asked, parameters
from aioqless.contrib.dashboard.pages import VIEWS
from aioqless.contrib.dashboard.state import Dashboard
from aioqless.contrib.http_sessions import Session
from aioqless.errors import AioqlessError
from aioqless.log import log
from aioqless.redis.connection import AWAY

HERE = Path(__file__).parent


def create_app(
    client: Client, *, access: Access | None = None, secret: str | Sequence[str] | None = None
) -> Starlette:
    """Make a dashboard for the queues of a client, to be served as it is or within another app.

    Args:
        client: Must be connected by the caller before the first request.
        access: Who may do what. Without it, only browsers on this machine that open the link with the start-up token are let in; the
            link is logged as `web.token_created`.
        secret: Signs sessions, at least 16 characters. Give the same one to several processes, or to one that is to know its browsers
            after a restart. Of several, the first signs and all of them verify: that is how to change it.

    Example:
        app.mount("/jobs", create_app(client, access=Access(authenticate=who)))
    """
    dashboard = Dashboard(client, access or Access(), secret, VIEWS)
    dashboard.log_token()
    shows, login = Shows(dashboard), Login(dashboard)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await dashboard.aclose()

    routes = [
        *[Route(path, shows.page, methods=["GET"]) for path in VIEWS],
        Route("/live", shows.live, methods=["GET"]),
        Route("/do/{act}", shows.do, methods=["POST"]),
        Route("/login", login.enter, methods=["GET", "POST"]),
        Route("/logout", login.leave, methods=["POST"]),
        Mount("/static", _Files(directory=HERE / "static")),
    ]
    missing = {404: shows.missing}
    proxies = list(dashboard.access.trusted_proxies)
    middleware = [Middleware(ProxyHeadersMiddleware, trusted_hosts=proxies)] if proxies else []
    middleware.append(Middleware(_guarded, dashboard=dashboard))
    app = Starlette(
        routes=routes, lifespan=lifespan, exception_handlers=missing, middleware=middleware
    )
    app.state.dashboard = dashboard
    return app


def _guarded(app: ASGIApp, dashboard: Dashboard) -> ASGIApp:
    return Guard(app, dashboard)


class _Files(StaticFiles):
    """Files for everybody: of one that isn't there a plain word tells, no page, which is for those
    who are known."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        try:
            return await super().get_response(path, scope)
        except HTTPException as missing:
            return PlainTextResponse(f"{missing.detail}\n", missing.status_code, missing.headers)


class Shows:
    """What answers requests that were let in."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._dashboard = dashboard

    async def page(self, request: Request) -> Response:
        """A whole page."""
        visit = visit_of(request)
        asked, token = (
            self._asked(request, within(request), request.url.query),
            self._dashboard.sessions.token(visit.session),
        )
        html, status = await self._dashboard.rendering.whole(
            asked, token, self._dashboard.notes.told(visit.session)
        )
        return HTMLResponse(html.encode("utf-8", "replace"), status)

    async def missing(self, request: Request, error: Exception) -> Response:
        """The same for an address that isn't known."""
        return await self.page(request)

    async def live(self, request: Request) -> Response:
        """Stream the contents of a page, now and after each change."""
        path, _, query = request.query_params.get("at", "/").partition("?")
        if path not in VIEWS:
            return PlainTextResponse("There is no such page.\n", 404)
        asked, session = self._asked(request, path, query), visit_of(request).session
        reader = session.nonce if self._dashboard.access.open else asked.who.name
        return Stream(self._own(self._dashboard.live.follow(asked, reader), session))

    async def _own(
        self, stream: AsyncGenerator[str, None], session: Session
    ) -> AsyncIterator[bytes]:
        token = self._dashboard.sessions.token(session)
        try:
            async for message in stream:
                if not await self._dashboard.is_still_open(session):
                    return
                yield self._dashboard.rendering.for_browser(message, token).encode(
                    "utf-8", "replace"
                )
        finally:
            await stream.aclose()

    async def do(self, request: Request) -> Response:
        """One act; then back to where it was asked for, with a word about it."""
        visit, name = visit_of(request), request.path_params["act"]
        act, who, form = ACTS.get(name), visit.who, await change_of(request)
        if act is None or who is None:
            return PlainTextResponse("There is no such act.\n", 404)
        to, kind, said = form.get("back", ""), "done", ""
        if who.role < act.role:
            kind, said = (
                "refused",
                f"That is for those who may {act.role.name.lower()}; you may {who.role.name.lower()}.",
            )
        else:
            try:
                done = await act.perform(Doing(self._dashboard.board, who, form))
                to, said = (done.to or to, done.said) if isinstance(done, Done) else (to, done)
            except (AioqlessError, ValueError, TypeError, PermissionError) as refused:
                kind, said = "refused", f"Not done: {_why(refused)}"
            except AWAY as away:
                kind, said = (
                    "refused",
                    f"Redis can't be reached, it may have been done or not: {away}",
                )
        self._dashboard.notes.keep(visit.session, kind, said)
        await self._noted(who, name, form, said)
        return RedirectResponse(request.scope.get("root_path", "") + inside(to), 303)

    async def _noted(self, who: Identity, act: str, form: dict[str, str], said: str) -> None:
        about = {field: value for field, value in form.items() if field not in ("back", "then")}
        try:
            await trail.add(self._dashboard.client, who, act, about, said)
        except (AioqlessError, *AWAY) as lost:
            log.error("web.audit_failed", who=who.name, act=act, why=str(lost))

    def _asked(self, request: Request, path: str, query: str) -> Asked:
        try:
            given = parameters(query)
        except ValueError:
            given = {}
        who = visit_of(request).who or Identity("", Role.READ)
        return Asked(
            self._dashboard.board,
            self._dashboard.client,
            who,
            request.scope.get("root_path", ""),
            path,
            given,
        )


def _why(error: Exception) -> str:
    told = getattr(error, "told", None)
    return told() if told else str(error)
