"""The web service of docs/testing.md, and its test."""

from __future__ import annotations

import sys
import types

import pytest

from aioqless import Client
from tests.unit.pages import ROOT, blocks

APP, TEST = (
    block
    for block in blocks(ROOT / "docs" / "testing.md", "python")
    if block.startswith(("# app/main.py", "# test_main.py"))
)


async def test_recipe_runs_against_the_redis_of_the_test(
    redis_url: str, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = types.ModuleType("app.main")
    monkeypatch.setitem(sys.modules, "app", types.ModuleType("app"))
    monkeypatch.setitem(sys.modules, "app.main", main)
    exec(APP, vars(main))
    test: dict[str, object] = {}
    exec(TEST, test)
    recipe = test["test_order_is_charged"]
    assert callable(recipe)
    await recipe(Client(redis_url, namespace=namespace), monkeypatch)
    async with Client(redis_url, namespace=namespace) as client:
        assert len(await client.jobs.complete()) == 1
