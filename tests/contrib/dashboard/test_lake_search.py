"""The Jobs page finds jobs in a lake."""

from __future__ import annotations

import re
from datetime import date
from html import unescape
from pathlib import Path

import pytest

from aioqless import Client
from aioqless.contrib.dashboard.app import create_app
from aioqless.contrib.http import Identify, Identity, Role
from tests.contrib.dashboard.test_access import client_of

pytest.importorskip("deltalake")

OPEN: Identify = lambda _: Identity("ann", Role.ADMIN)  # noqa: E731


async def test_search_continues_in_the_lake_day_by_day(client: Client, tmp_path: Path) -> None:
    from aioqless.contrib.lake.lake import Lake
    from tests.contrib.lake.lakes import archive, event, run

    secret = '{"customer": 4711, "api_token": "hunter2"}'
    of = {"namespace": client.namespace}
    archive(
        Lake(tmp_path / "lake", create=True),
        event("old", run(0, 1, 2), id="1-0", data=secret, **of),
        event("new", run(86_400, 86_401, 86_402), id="2-0", date=date(2026, 11, 22), **of),
    )
    app = create_app(client, identify=OPEN, lake=str(tmp_path / "lake"))
    async with client_of(app) as http:
        page = (await http.get("/jobs?filter=customer:4711")).text
        while following := re.search(
            r'(?:http-equiv="refresh" content="0; url=|href=")([^"]+day=[^"]+on=1)"', page
        ):
            page = (await http.get(unescape(following[1]))).text
        assert "The lake, 2026-11-21 (UTC): <strong>1</strong> found" in page
        assert ">old</code>" in page and "hunter2" not in page
        page = (await http.get("/jobs?filter=since:2026-11-22&day=latest")).text
        assert ">new</code>" in page and "Continue" not in page
        page = (await http.get("/jobs?filter=api_token:hunter2&day=latest")).text
        assert "api_token is hidden" in page
        page = (await http.get("/jobs?filter=x&day=yesterday")).text
        assert "can’t be searched" in page  # noqa: RUF001
    async with client_of(create_app(client, identify=OPEN, lake=str(tmp_path / "none"))) as http:
        assert "there is no lake" in (await http.get("/jobs?filter=x&day=latest")).text
    async with client_of(create_app(client, identify=OPEN)) as http:
        assert "Search the lake" not in (await http.get("/jobs?filter=x")).text
