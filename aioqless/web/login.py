"""Logging in and out. Guessing is slow: a name that was tried in vain a few times has to wait."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import OrderedDict
from functools import cache

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

import aioqless.web.passwords as passwords
from aioqless.log import log
from aioqless.web.access import Identity, Role
from aioqless.web.asked import Asked, Page
from aioqless.web.dashboard import Dashboard
from aioqless.web.guard import change_of, cookie, visit_of

FREE_GUESSES, PAUSE, MOST_NAMES = 5, 30.0, 10_000
AT_ONCE = 2  # each takes 32 MiB and a processor


class Login:
    """Owns who guessed in vain how often, and until when they wait."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._dashboard = dashboard
        self._vain: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._guessing = asyncio.Semaphore(AT_ONCE)

    async def enter(self, request: Request) -> Response:
        """The form, and what is filled in."""
        root = request.scope.get("root_path", "")
        if not self._dashboard.access.users:
            return RedirectResponse(f"{root}/", 303)
        if request.method != "POST":
            return self._form(request, "", request.query_params.get("to", ""))
        form = await change_of(request)
        name = form.get("name", "")[:64]
        user = self._dashboard.access.users.get(name)
        async with self._guessing:  # in here, since many guesses may come at once
            if time.monotonic() < self._vain.get(name, (0, 0.0))[1]:
                return self._form(request, f"Too many guesses: wait {PAUSE:.0f} seconds.", form.get("to", ""), 429)
            right = await asyncio.to_thread(passwords.is_right, form.get("password", "")[:1000], user.password if user else nobody())
            if not right:
                self._guessed(name)
        if not user or not right:
            log.warning("web.refused", why="wrong name or password", client=request.client.host if request.client else "", path="/login")
            return self._form(request, "Name or password is wrong.", form.get("to", ""), 403)
        self._vain.pop(name, None)
        return self._let_in(request, user.name, form.get("to", ""))

    def _guessed(self, name: str) -> None:
        vain = self._vain.get(name, (0, 0.0))[0] + 1
        self._vain[name] = vain, time.monotonic() + PAUSE if vain >= FREE_GUESSES else 0.0
        self._vain.move_to_end(name)
        while len(self._vain) > MOST_NAMES:
            self._vain.popitem(last=False)

    async def leave(self, request: Request) -> Response:
        """End this session."""
        await change_of(request)
        self._dashboard.sessions.end(visit_of(request).session)
        answer = RedirectResponse(request.scope.get("root_path", "") + "/login", 303)
        answer.headers["Set-Cookie"] = cookie("", request, 0)
        return answer

    def _let_in(self, request: Request, name: str, to: str) -> Response:
        answer = RedirectResponse(request.scope.get("root_path", "") + inside(to), 303)
        answer.headers["Set-Cookie"] = cookie(self._dashboard.sessions.cookie(self._dashboard.sessions.begin(name)), request)
        return answer

    def _form(self, request: Request, wrong: str, to: str, status: int = 200) -> Response:
        visit = visit_of(request)
        nobody = Asked(
            self._dashboard.board, self._dashboard.client, Identity("", Role.READ), request.scope.get("root_path", ""), "/login", {}
        )
        page = Page("login.html", "Log in", {"wrong": wrong, "to": inside(to)}, live=False)
        return HTMLResponse(self._dashboard.rendering.of(page, nobody, self._dashboard.sessions.token(visit.session)), status)


@cache
def nobody() -> str:
    """A hash that no password has, so that an unknown name takes as long as a known one."""
    return passwords.hashed(secrets.token_hex(16))


def inside(to: str) -> str:
    """An address within the dashboard; its first page for any other."""
    return to if to.startswith("/") and not to.startswith(("//", "/\\")) and to.isprintable() else "/"
