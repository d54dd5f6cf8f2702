"""The API with a worker, and the programs that use it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from aioqless import Client, Worker
from aioqless.contrib.http import Token, Tokens, create_api
from aioqless.contrib.http_api import job_router
from tests.contrib.http_api import jobs

SHOP, OTHER = "s" * 32, "o" * 32
SECRET = "what signs the tokens of browsers"
TOKENS = [
    Token("shop", [SHOP, "n" * 32], may_put=["shop.*", "back.greet"]),
    Token("sho", OTHER, may_put=["shop.*"], may_read=["shop.total"]),
]
KNOWN = Tokens(TOKENS)


class Program(httpx.AsyncClient):
    """A program with a token."""

    def __init__(self, app: ASGIApp, token: str, **headers: str) -> None:
        headers |= {"Authorization": f"Bearer {token}"} if token else {}
        transport = httpx.ASGITransport(app, client=("10.0.0.7", 50_000))
        super().__init__(transport=transport, base_url="http://api", headers=headers)

    async def put(self, klass: str, data: Any, key: str | None = None, **query: Any) -> Any:  # type: ignore[override]
        answer = await self.ask_to_put(klass, data, key, **query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def ask_to_put(
        self, klass: str, data: Any, key: str | None = None, **query: Any
    ) -> httpx.Response:
        headers = {"Idempotency-Key": key} if key else {}
        return await self.post(f"/klasses/{klass}", json=data, params=query, headers=headers)

    async def find(self, **query: str) -> list[str]:
        page = (await self.get("/jobs", params=query)).json()
        found = [each["jid"] for each in page["jobs"]]
        while cursor := page.get("cursor"):
            page = (await self.get("/jobs", params={**query, "cursor": cursor})).json()
            found += [each["jid"] for each in page["jobs"]]
        return found


def refusal(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


@pytest.fixture
def app(client: Client) -> ASGIApp:
    return create_api(job_router(client, jobs), identify=KNOWN, secret=SECRET)


@pytest.fixture
def shop(app: ASGIApp) -> Program:
    return Program(app, SHOP)


@pytest.fixture
def other(app: ASGIApp) -> Program:
    return Program(app, OTHER)


@pytest.fixture
async def worker(client: Client) -> AsyncIterator[Worker]:
    async with Worker(client, jobs) as worker:
        yield worker
