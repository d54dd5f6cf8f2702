"""The example of an import, with a browser's requests and a worker."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from aioqless import Client, Worker
from examples.csv_import import app, jobs
from tests.conftest import Until
from tests.contrib.dashboard.conftest import served


@pytest.fixture
async def client(
    redis_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> AsyncIterator[Client]:
    monkeypatch.setenv("AIOQLESS_URL", redis_url)
    monkeypatch.setenv("AIOQLESS_NAMESPACE", "imports")
    monkeypatch.setattr(app, "FOLDER", str(tmp_path / "imports"))
    async with Client() as client:
        yield client


async def follow(http: httpx.AsyncClient, name: str) -> dict[str, Any]:
    """Return the last message of the progress."""
    last = {}
    async with http.stream("GET", f"/imports/{name}/progress") as stream:
        async for line in stream.aiter_lines():
            if line.startswith("data: "):
                last = json.loads(line.removeprefix("data: "))
    return last


async def test_rows_are_imported_and_the_failed_ones_listed(client: Client, until: Until) -> None:
    text = "price\n" + "".join(f"{number}\n" for number in range(1, 60)) + "none\n"
    async with (
        served(app.app) as site,
        httpx.AsyncClient(base_url=site, trust_env=False, timeout=60) as http,
    ):
        name = (await http.post("/imports", content=text)).json()["name"]
        async with Worker(client, jobs):
            last = await follow(http, name)
            assert (last["complete"], last["failed"], last["rows"]) == (60, 1, ["60"])

            async def results() -> str:
                reply = await http.get(f"/imports/{name}/results.csv")
                return reply.text if reply.status_code == 200 else ""

            lines = (await until(results)).splitlines()
            assert lines[:3] == ["row,price", "1,1.19", "2,2.38"] and len(lines) == 60
        assert (await http.post(f"/imports/{name}/retry")).json() == {"retried": 1}
        assert (await http.post(f"/imports/{name}/cancel")).json() == {"canceled": 1}
        assert (await follow(http, name))["canceled"] == 1
        assert (await http.get("/imports/other/progress")).status_code == 404
        assert "Import" in (await http.get(f"/imports/{name}")).text
