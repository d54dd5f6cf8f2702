"""The program of docs/http-api.md, and the requests of its table."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from aioqless import Client, Worker
from aioqless.contrib.http_api.operations import operations_of
from tests.contrib.http_api import jobs
from tests.contrib.http_api.conftest import SHOP, Program

PAGE = (Path(__file__).parents[3] / "docs" / "http-api.md").read_text("utf-8")


async def test_program_answers_the_requests_below_it(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_SECRET", SHOP)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    shop = Program(names["application"](client), SHOP)
    put = await shop.put("shop.receipt", {"order": 7, "lines": ["tea"]}, "order-7")
    async with Worker(client, [names["receipt"]]):
        path = f"/klasses/shop.receipt/results/{put['jid']}"
        answer = await shop.get(path, params={"wait": 30})
    assert answer.json() == {"state": "complete", "result": "Order 7: tea"}
    assert (await shop.get("/openapi.json")).status_code == 200


def test_table_has_every_request() -> None:
    for each in operations_of([jobs.greet]):
        path = each.path.replace("shop.greet", "{klass}").replace("{signal}", "{name}")
        last = path.rpartition("/")[2]
        assert f"`{each.method} {path}" in PAGE or f"`/{last}`" in PAGE, path
