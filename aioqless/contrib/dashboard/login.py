"""Logging in with a token, and out. The audit log records both, and refused attempts."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from aioqless.contrib.dashboard import audit_log
from aioqless.contrib.dashboard.dashboard import Dashboard
from aioqless.contrib.dashboard.middleware import context_of, read_form
from aioqless.contrib.dashboard.page_request import Page, PageRequest
from aioqless.contrib.dashboard.rendering import Renderer
from aioqless.contrib.http import Identity, Role
from aioqless.contrib.http.proxy_header import client_of
from aioqless.contrib.http.refusal_log import RefusalLog

UNKNOWN = "(unknown)"  # the user of a refused attempt


class Login:
    """Trades tokens for cookies. Owns the record of refusals that were logged."""

    def __init__(self, dashboard: Dashboard, renderer: Renderer) -> None:
        self._dashboard = dashboard
        self._identification = dashboard.identification
        self._renderer = renderer
        self._refusals = RefusalLog()

    async def log_in(self, request: Request) -> Response:
        """Show the form, or log in with its fields."""
        if self._identification.tokens is None:
            return RedirectResponse(f"{_root(request)}/", 303)
        if request.method != "POST":
            return self._form(request, "", request.query_params.get("to", ""))
        form = await read_form(request)
        return await self._attempt(request, form.get("secret", ""), form.get("to", ""))

    async def open_link(self, request: Request, secret: str, to: str) -> Response:
        """Log in with the start-up token of a link, and redirect to the page without the token.

        The token would stay in the browser's history. It is not looked at if a user is logged in.
        """
        if to.startswith("/login"):
            to = "/"
        if context_of(request).user:
            return RedirectResponse(_root(request) + local_address(to), 303)
        return await self._attempt(request, secret, to)

    async def _attempt(self, request: Request, secret: str, to: str) -> Response:
        """Log a user in, or show the form again."""
        client, address = self._dashboard.client, client_of(request)
        session = self._identification.sign_in(secret)
        user = self._identification.holder(session) if session else None
        if session is None or user is None or user.role == Role.NONE:
            if self._refusals.is_due(address):
                name = user.name if user else UNKNOWN
                await audit_log.record_login(client, name, "log-in", address, "refused")
            why = "This token has no role in the dashboard." if user else "The token is wrong."
            return self._form(request, why, to, 403)
        await audit_log.record_login(client, session.name, "log-in", address, "done")
        response = RedirectResponse(_root(request) + local_address(to), 303)
        response.headers["Set-Cookie"] = self._identification.sessions.cookie(session, request)
        return response

    async def log_out(self, request: Request) -> Response:
        """End this session."""
        await read_form(request)
        session, address = context_of(request).session, client_of(request)
        self._identification.sessions.end(session)
        await audit_log.record_login(
            self._dashboard.client, session.name, "log-out", address, "done"
        )
        response = RedirectResponse(f"{_root(request)}/login", 303)
        response.headers["Set-Cookie"] = self._identification.sessions.cookie(None, request)
        return response

    def _form(self, request: Request, error: str, to: str, status: int = 200) -> Response:
        page_request = PageRequest(
            self._dashboard,
            self._dashboard.client,
            Identity(""),
            _root(request),
            "/login",
            {},
        )
        tokens = self._identification.tokens
        values = {
            "error": error,
            "to": local_address(to),
            "local": tokens is not None and tokens.local,
        }
        page = Page("login.html", "Sign in", values, live=False)
        token = self._identification.sessions.token(context_of(request).session)
        return HTMLResponse(self._renderer.render(page, page_request, token), status)


def local_address(to: str) -> str:
    """Return an address within the dashboard as it is; the first page for any other."""
    is_local = to.startswith("/") and not to.startswith(("//", "/\\")) and to.isprintable()
    return to if is_local else "/"


def _root(request: Request) -> str:
    root: str = request.scope.get("root_path", "")
    return root
