"""Logging in and out. Guesses are limited, and every attempt is in the audit log."""

from __future__ import annotations

import asyncio
import hmac

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

import aioqless.contrib.dashboard.audit_log as trail
import aioqless.contrib.dashboard.passwords as passwords
from aioqless.contrib.dashboard.access import Identity, Role
from aioqless.contrib.dashboard.login_attempts import Attempts, TooMany, network_of
from aioqless.contrib.dashboard.middleware import change_of, cookie, open_session, visit_of
from aioqless.contrib.dashboard.page_request import Asked, Page
from aioqless.contrib.dashboard.state import LOCAL, Dashboard
from aioqless.contrib.http_sessions import digest

KNOWN_FOR = 90 * 86_400  # seconds for which an address is known as one that its user logged in from
TOO_MANY = "Too many attempts to log in. Wait a minute and try again."


class Login:
    """Owns the attempts to log in."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._dashboard = dashboard
        self._attempts = Attempts()

    async def enter(self, request: Request) -> Response:
        """Show the form, or log in with what is filled in."""
        access = self._dashboard.access
        if access.authenticate:
            return RedirectResponse(f"{request.scope.get('root_path', '')}/", 303)
        if request.method != "POST":
            return self._form(request, "", request.query_params.get("to", ""))
        form = await change_of(request)
        to, name = form.get("to", ""), LOCAL if access.open else form.get("name", "")[:64]
        address = request.client.host if request.client else ""
        try:
            right = await self._is_right(name, form.get("password", "")[:1000], network_of(address))
        except TooMany:
            trail.log_refused(self._who(name), address, "too many attempts")
            return self._form(request, TOO_MANY, to, 429)
        if not right:
            await trail.add_login(
                self._dashboard.client, self._who(name), "log-in", address, "refused"
            )
            return self._form(
                request,
                "The token is wrong." if access.open else "Name or password is wrong.",
                to,
                403,
            )
        answer = RedirectResponse(request.scope.get("root_path", "") + inside(to), 303)
        answer.headers["Set-Cookie"] = await open_session(request, name)
        return answer

    async def _is_right(self, name: str, password: str, address: str) -> bool:
        """Whether name and password fit. An unknown name takes as long as a known one. Raises
        TooMany."""
        proof = self._dashboard.proof_of(name)
        known_id = digest(f"known {name} {address}")
        found = (
            await self._dashboard.client.store.session_read(ids=[known_id]) if proof else [False]
        )
        async with self._attempts.admitted(
            name, address, bool(proof) and found[0] == digest(proof or "")
        ):
            right = await self._matches(name, password) and proof is not None
        if right and proof is not None:
            await self._attempts.succeeded(name, address)
            await self._dashboard.client.store.session_keep(
                id=known_id, proof=digest(proof), seconds=KNOWN_FOR
            )
        return right

    async def _matches(self, name: str, password: str) -> bool:
        if self._dashboard.access.open:
            return hmac.compare_digest(
                password.encode("utf-8", "replace"), self._dashboard.startup_token.encode()
            )
        users = self._dashboard.access.users
        user = (
            users.get(name)
            or sorted(users.values(), key=lambda each: digest(f"{each.password} {name}"))[0]
        )
        return (
            await asyncio.to_thread(passwords.is_right, password, user.password)
            and user.name == name
        )

    async def leave(self, request: Request) -> Response:
        """End this session, everywhere."""
        await change_of(request)
        visit = visit_of(request)
        await self._dashboard.sessions.end(visit.session)
        address = request.client.host if request.client else ""
        await trail.add_login(
            self._dashboard.client, visit.session.name, "log-out", address, "done"
        )
        answer = RedirectResponse(request.scope.get("root_path", "") + "/login", 303)
        answer.headers["Set-Cookie"] = cookie("", request, 0)
        return answer

    def _who(self, name: str) -> str:
        """Return a name for the audit log, where a password that was typed as a name has no
        place."""
        return name if self._dashboard.proof_of(name) else "(unknown)"

    def _form(self, request: Request, wrong: str, to: str, status: int = 200) -> Response:
        visit = visit_of(request)
        nobody = Asked(
            self._dashboard.board,
            self._dashboard.client,
            Identity("", Role.READ),
            request.scope.get("root_path", ""),
            "/login",
            {},
        )
        page = Page("login.html", "Log in", {"wrong": wrong, "to": inside(to)}, live=False)
        return HTMLResponse(
            self._dashboard.rendering.of(
                page, nobody, self._dashboard.sessions.token(visit.session)
            ),
            status,
        )


def inside(to: str) -> str:
    """An address within the dashboard; its first page for any other."""
    return (
        to if to.startswith("/") and not to.startswith(("//", "/\\")) and to.isprintable() else "/"
    )
