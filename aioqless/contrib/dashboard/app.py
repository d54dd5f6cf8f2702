"""The application: its routes, and create_app."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from aioqless.client import REDIS_UNAVAILABLE, Client, acting_as
from aioqless.contrib.dashboard import audit_log
from aioqless.contrib.dashboard.actions import ACTIONS
from aioqless.contrib.dashboard.actions.action import ActionRequest, Redirect
from aioqless.contrib.dashboard.dashboard import Dashboard
from aioqless.contrib.dashboard.live_updates import LiveStream, LiveUpdates
from aioqless.contrib.dashboard.login import Login, local_address
from aioqless.contrib.dashboard.middleware import (
    AccessMiddleware,
    context_of,
    path_of,
    read_form,
)
from aioqless.contrib.dashboard.page_request import PageRequest, parse_parameters
from aioqless.contrib.dashboard.pages import PAGES
from aioqless.contrib.dashboard.redaction import Privacy
from aioqless.contrib.dashboard.rendering import Renderer
from aioqless.contrib.http import (
    FramingMiddleware,
    Identification,
    Identify,
    Identity,
    Role,
    Session,
    Sessions,
    Tokens,
)
from aioqless.contrib.http.proxy_header import proxy_middleware
from aioqless.contrib.http.tokens import LOCAL
from aioqless.errors import AioqlessError, ScriptError
from aioqless.handlers import Source

COOKIE = "aioqless"
SESSION_LIFETIME = 12 * 3600  # seconds
MAX_MESSAGES = 5  # of a browser
STATIC = Path(__file__).parent / "static"


def create_app(
    client: Client,
    *,
    identify: Identify | None = None,
    secret: str | Sequence[str] | None = None,
    trusted_proxies: Sequence[str] = (),
    privacy: Privacy | None = None,
    job_links: Mapping[str, str] = MappingProxyType({}),
    handlers: Sequence[Source] = (),
    lake: str | None = None,
) -> Starlette:
    """Create a dashboard for the queues of a client, to be served as it is or within another app.

    Args:
        client: Must be connected by the caller before the first request. Of a namespace with
            partitions, the client of one: `client.partitions[n]`.
        identify: Returns who sent a request, None for no user: a function of yours, `Tokens` or
            `ProxyHeader`. Without it, only browsers on this machine that open the link with the
            start-up token are let in; the link is logged as `web.token_created`.
        secret: Signs sessions, at least 16 characters. Give the same one to several processes, or
            to one whose sessions should survive a restart. Of several, the first signs and all of
            them verify: that is how to rotate it.
        trusted_proxies: Addresses or networks of reverse proxies whose X-Forwarded-For and
            X-Forwarded-Proto are trusted; `unix` for a server that listens on a Unix socket.
        privacy: What is not shown, and to whom.
        job_links: Links on the page of a job, by the name of an argument (`customer`, `order.id`),
            of `jid`, `klass`, `queue`, `worker`, `trace_id`, or of the job's context. `{value}`
            stands for the value: `{"customer": "https://crm.example/{value}"}`.
        handlers: Handlers, or modules with them, of which users may put new jobs.
        lake: Folder or URL of a lake. The Jobs page finds jobs there that Redis no longer has; the
            extra `lake` must be installed.

    Raises:
        TypeError: The client has partitions.
        ValueError: A secret that is too short, a proxy that is no address, or an invalid link.

    Example:
        app.mount("/jobs", create_app(client, identify=who))
    """
    if hasattr(type(client), "partitions"):
        raise TypeError("the dashboard shows one partition at a time: give it client.partitions[n]")
    sessions = Sessions(COOKIE, SESSION_LIFETIME, "Lax", secret)
    dashboard = Dashboard(
        client,
        Identification(Tokens.at_startup() if identify is None else identify, sessions),
        privacy=privacy or Privacy(),
        job_links=job_links,
        handlers=handlers,
        lake=lake,
    )
    renderer = Renderer(PAGES)
    live = LiveUpdates(dashboard, renderer)
    endpoints, login = Endpoints(dashboard, renderer, live), Login(dashboard, renderer)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        yield
        await live.aclose()
        await dashboard.aclose()

    routes = [
        *[Route(path, endpoints.show_page, methods=["GET"]) for path in PAGES],
        Route("/live", endpoints.stream_page, methods=["GET"]),
        Route("/do/{action}", endpoints.perform_action, methods=["POST"]),
        Route("/login", login.log_in, methods=["GET", "POST"]),
        Route("/logout", login.log_out, methods=["POST"]),
        Mount("/static", _Files(directory=STATIC)),
    ]
    middleware = [
        Middleware(FramingMiddleware),
        *proxy_middleware(trusted_proxies),
        Middleware(AccessMiddleware, dashboard=dashboard, open_link=login.open_link),
    ]
    app = Starlette(
        routes=routes,
        lifespan=lifespan,
        exception_handlers={404: endpoints.show_missing},
        middleware=middleware,
    )
    app.state.dashboard, app.state.live = dashboard, live
    return app


class _Files(StaticFiles):
    """Static files, which need no login; a missing one gets plain text instead of a page."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return a file."""
        try:
            return await super().get_response(path, scope)
        except HTTPException as missing:
            return PlainTextResponse(f"{missing.detail}\n", missing.status_code, missing.headers)


class Endpoints:
    """Answers requests that the middleware has admitted."""

    def __init__(self, dashboard: Dashboard, renderer: Renderer, live: LiveUpdates) -> None:
        self._dashboard = dashboard
        self._renderer = renderer
        self._live = live

    async def show_page(self, request: Request) -> Response:
        """Return a page."""
        session = context_of(request).session
        html, status = await self._renderer.render_page(
            replace(
                self._page_request(request, path_of(request), request.url.query),
                browser=session.nonce,
            ),
            self._dashboard.identification.sessions.token(session),
            self._dashboard.flash.pop(session.nonce, []),
        )
        return HTMLResponse(html.encode("utf-8", "replace"), status)

    async def show_missing(self, request: Request, _error: Exception) -> Response:
        """Return the page for an unknown address."""
        return await self.show_page(request)

    async def stream_page(self, request: Request) -> Response:
        """Stream the contents of a page, now and after each change."""
        path, _, query = request.query_params.get("at", "/").partition("?")
        if path not in PAGES:
            return PlainTextResponse("There is no such page.\n", 404)
        page, session = self._page_request(request, path, query), context_of(request).session
        reader = session.nonce if page.user.name == LOCAL else page.user.name
        return LiveStream(self._personalize(self._live.follow(page, reader), session))

    async def _personalize(
        self, stream: AsyncGenerator[str, None], session: Session
    ) -> AsyncIterator[bytes]:
        """Insert a browser's token into a shared stream; end it when the session is over."""
        token = self._dashboard.identification.sessions.token(session)
        try:
            async for message in stream:
                if not self._dashboard.identification.is_open(session):
                    return
                yield self._renderer.insert_token(message, token).encode("utf-8", "replace")
        finally:
            await stream.aclose()

    async def perform_action(self, request: Request) -> Response:
        """Perform an action, and redirect to the page of its form with a flash message."""
        context, name = context_of(request), request.path_params["action"]
        action, user, form = ACTIONS.get(name), context.user, await read_form(request)
        if action is None or user is None:
            return PlainTextResponse("Unknown action.\n", 404)
        to, kind, message = form.get("back", ""), "done", ""
        if user.role < action.role:
            needed, given = action.role.name.lower(), user.role.name.lower()
            kind, message = (
                "refused",
                f"This action requires the role {needed} (you have: {given}).",
            )
        else:
            try:
                with acting_as(user.name):
                    result = await action.perform(
                        ActionRequest(self._dashboard, user, form, context.session.nonce)
                    )
                if isinstance(result, Redirect):
                    to, message = result.to or to, result.message
                else:
                    message = result
            except (AioqlessError, ValueError, TypeError, PermissionError) as error:
                kind, message = "refused", f"Not done: {_reason(error)}"
            except REDIS_UNAVAILABLE as error:
                kind = "refused"
                message = f"Redis can't be reached, it may have been done or not: {error}"
        self._live.note_change()
        flash, browser = self._dashboard.flash, context.session.nonce
        flash[browser] = [*flash.get(browser, [])[1 - MAX_MESSAGES :], (kind, message)]
        if kind == "refused":
            form.pop("filter", None)  # it may be refused since it names what is hidden
        if kind == "refused" or action.is_recorded:
            await audit_log.record(self._dashboard.client, user, name, form, message)
        return RedirectResponse(request.scope.get("root_path", "") + local_address(to), 303)

    def _page_request(self, request: Request, path: str, query: str) -> PageRequest:
        try:
            parameters = parse_parameters(query)
        except ValueError:
            parameters = {}
        user = context_of(request).user or Identity("", Role.READ)
        root = request.scope.get("root_path", "")
        return PageRequest(self._dashboard, self._dashboard.client, user, root, path, parameters)


def _reason(error: Exception) -> str:
    return error.describe() if isinstance(error, ScriptError) else str(error)
