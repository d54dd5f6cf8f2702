"""Logging in and out. Guesses are limited, and every attempt is recorded in the audit log."""

from __future__ import annotations

import asyncio
import hmac

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from aioqless.contrib.dashboard import audit_log, passwords
from aioqless.contrib.dashboard.access import Identity, Role
from aioqless.contrib.dashboard.dashboard import LOCAL, Dashboard
from aioqless.contrib.dashboard.middleware import (
    client_of,
    context_of,
    cookie_header,
    open_session,
    read_form,
)
from aioqless.contrib.dashboard.page_request import Page, PageRequest
from aioqless.contrib.dashboard.rendering import Renderer
from aioqless.contrib.http import HttpCommands, digest
from aioqless.contrib.http.login_attempts import (
    LoginAttempts,
    TooManyAttempts,
    network_of,
)

KNOWN_FOR = 90 * 86_400  # seconds for which an address is known as one its user logged in from
TOO_MANY = "Too many attempts. Try again in a minute."


class Login:
    """Owns the attempts to log in."""

    def __init__(self, dashboard: Dashboard, renderer: Renderer) -> None:
        self._dashboard = dashboard
        self._renderer = renderer
        self._attempts = LoginAttempts()

    async def log_in(self, request: Request) -> Response:
        """Show the form, or log in with its fields."""
        access, root = self._dashboard.access, request.scope.get("root_path", "")
        if access.authenticate:
            return RedirectResponse(f"{root}/", 303)
        if request.method != "POST":
            return self._form(request, "", request.query_params.get("to", ""))
        form = await read_form(request)
        name = LOCAL if access.uses_startup_token else form.get("name", "")[:64]
        return await self._attempt(request, name, form.get("password", ""), form.get("to", ""))

    async def open_link(self, request: Request, token: str, to: str) -> Response:
        """Log in with the start-up token of a link, and redirect to the page without the token.

        The token would stay in the browser's history. It is not looked at if a user is logged in.
        """
        if to.startswith("/login"):
            to = "/"
        if context_of(request).user:
            return RedirectResponse(request.scope.get("root_path", "") + local_address(to), 303)
        return await self._attempt(request, LOCAL, token, to)

    async def _attempt(self, request: Request, name: str, password: str, to: str) -> Response:
        """Log a user in, or show the form again."""
        access, client = self._dashboard.access, client_of(request)
        network = network_of(client)
        try:
            valid = await self._verify(name, password[:1000], network)
        except TooManyAttempts:
            if await self._attempts.is_first_refusal(network):
                audit_log.log_refused_login(self._recorded_name(name), client, "too many attempts")
            return self._form(request, TOO_MANY, to, 429)
        if not valid:
            await audit_log.record_login(
                self._dashboard.client, self._recorded_name(name), "log-in", client, "refused"
            )
            what = "The token" if access.uses_startup_token else "Name or password"
            return self._form(request, f"{what} is wrong.", to, 403)
        response = RedirectResponse(request.scope.get("root_path", "") + local_address(to), 303)
        response.headers["Set-Cookie"] = await open_session(request, name)
        return response

    async def log_out(self, request: Request) -> Response:
        """End this session, in every process."""
        await read_form(request)
        session = context_of(request).session
        await self._dashboard.sessions.end(session)
        await audit_log.record_login(
            self._dashboard.client, session.name, "log-out", client_of(request), "done"
        )
        response = RedirectResponse(request.scope.get("root_path", "") + "/login", 303)
        response.headers["Set-Cookie"] = cookie_header("", request, 0)
        return response

    async def _verify(self, name: str, password: str, network: str) -> bool:
        """Return whether the password is the user's; raise TooManyAttempts.

        An unknown name takes as long as a known one.
        """
        proof = self._dashboard.proof_of(name)
        records = HttpCommands(self._dashboard.client.internals.store)
        known_id = digest(f"known {name} {network}")
        known = False
        if proof is not None:
            (found,) = await records.session_read(ids=[known_id])
            known = found == digest(proof)
        async with self._attempts.admit(name, network, known):
            valid = await self._matches(name, password) and proof is not None
        if valid and proof is not None:
            await self._attempts.clear(name, network)
            await records.session_keep(id=known_id, proof=digest(proof), seconds=KNOWN_FOR)
        return valid

    async def _matches(self, name: str, password: str) -> bool:
        if self._dashboard.access.uses_startup_token:
            expected = self._dashboard.startup_token.encode()
            return hmac.compare_digest(password.encode("utf-8", "replace"), expected)
        users = self._dashboard.access.users
        user = users.get(name) or min(
            users.values(), key=lambda each: digest(f"{each.password} {name}")
        )
        matches = await asyncio.to_thread(passwords.verify, password, user.password)
        return matches and user.name == name

    def _recorded_name(self, name: str) -> str:
        """Return a name for the audit log: a password may have been typed as an unknown one."""
        return name if self._dashboard.proof_of(name) else "(unknown)"

    def _form(self, request: Request, error: str, to: str, status: int = 200) -> Response:
        page_request = PageRequest(
            self._dashboard,
            self._dashboard.client,
            Identity("", Role.READ),
            request.scope.get("root_path", ""),
            "/login",
            {},
        )
        values = {"error": error, "to": local_address(to)}
        page = Page("login.html", "Sign in", values, live=False)
        token = self._dashboard.sessions.token(context_of(request).session)
        return HTMLResponse(self._renderer.render(page, page_request, token), status)


def local_address(to: str) -> str:
    """Return an address within the dashboard as it is; the first page for any other."""
    is_local = to.startswith("/") and not to.startswith(("//", "/\\")) and to.isprintable()
    return to if is_local else "/"
