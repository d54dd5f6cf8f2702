"""People who use the human-task API over HTTP."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from aioqless import Client
from aioqless.contrib.http import Token, Tokens, create_api
from aioqless.contrib.human_tasks import ReservationPolicy, TaskQueue
from aioqless.contrib.human_tasks.api import task_router

HOST = "http://127.0.0.1"
SECRETS = {name: f"the long secret of the token of {name}" for name in ("Ada", "Bob", "Eve")}
KNOWN = Tokens(Token(name, each, may_reserve=["rev*"]) for name, each in SECRETS.items())


class Browser:
    """One person's browser, with tabs."""

    def __init__(
        self, app: ASGIApp, name: str, *, address: str = "127.0.0.1", host: str = HOST
    ) -> None:
        transport = httpx.ASGITransport(app, client=(address, 50_000), raise_app_exceptions=True)
        self.http = httpx.AsyncClient(transport=transport, base_url=host)
        self.name = name
        self.token = ""

    async def sign_in(self, **body: Any) -> httpx.Response:
        body = body or {"token": SECRETS.get(self.name)}
        answer = await self.http.post("/session", json=body)
        self.token = answer.json().get("token") or ""
        return answer

    async def ask(self, path: str, tab: str = "1", **query: str) -> httpx.Response:
        return await self.http.get(
            f"/tasks/review/{path}".rstrip("/"), params=query, headers={"X-Tab": tab}
        )

    async def do(
        self, verb: str, tab: str = "1", key: str | None = None, /, **body: Any
    ) -> httpx.Response:
        headers = {"X-Tab": tab, "X-Token": self.token} | ({"Idempotency-Key": key} if key else {})
        return await self.http.post(f"/tasks/review/{verb}", json=body, headers=headers)

    async def reserve(self, tab: str = "1", **body: Any) -> Any:
        answer = await self.do("reservation", tab, **body)
        assert answer.status_code == 200, answer.text
        return answer.json()["task"]


@pytest.fixture
def tasks(client: Client) -> TaskQueue:
    return TaskQueue(client, "review", ReservationPolicy(limit=300, max_limit=600))


@pytest.fixture
def app(tasks: TaskQueue) -> ASGIApp:
    return create_api(task_router({"review": tasks}), identify=KNOWN)


@pytest.fixture
async def ada(app: ASGIApp) -> Browser:
    browser = Browser(app, "Ada")
    assert (await browser.sign_in()).status_code == 200
    return browser


@pytest.fixture
async def bob(app: ASGIApp) -> Browser:
    browser = Browser(app, "Bob")
    await browser.sign_in()
    return browser
