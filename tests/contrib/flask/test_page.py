"""The application of docs/flask.md."""

from __future__ import annotations

import asyncio
import sys
import types
from pathlib import Path

import pytest

from aioqless import Client
from aioqless.contrib.flask.app_context import worker_sources
from aioqless.testing import run_jobs
from tests.conftest import existing_job
from tests.pages import ROOT, blocks
from tests.projects import run_pytest


async def test_application_of_the_page_puts_a_job_that_runs(
    client: Client,
    redis_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, _ = blocks(ROOT / "docs" / "flask.md", "python")
    shop = types.ModuleType("shop")
    monkeypatch.setitem(sys.modules, "shop", shop)
    monkeypatch.setenv("AIOQLESS_NAMESPACE", client.namespace)
    exec(code.replace("redis://localhost:6379", redis_url), vars(shop))
    app = shop.create_app()
    try:
        answer = await asyncio.to_thread(app.test_client().post, "/greetings/Ada")
    finally:
        app.extensions["aioqless"].close()
    await run_jobs(client, *worker_sources(app, [shop]), queues=["mail"])
    assert (await existing_job(client, answer.text)).state == "complete"
    assert "hello Ada from the corner shop" in capsys.readouterr().out


def test_tests_of_the_page_pass(tmp_path: Path) -> None:
    for name, code in zip(
        ("shop", "test_shop"), blocks(ROOT / "docs/flask.md", "python"), strict=True
    ):
        (tmp_path / f"{name}.py").write_text(code)
    assert "2 passed" in run_pytest(tmp_path)
