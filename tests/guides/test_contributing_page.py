"""The recipes of docs/CONTRIBUTING.md lead to working code."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest

from aioqless import Client, validation
from aioqless.contrib.dashboard import create_app
from aioqless.contrib.dashboard.actions import ACTIONS
from aioqless.contrib.dashboard.actions.action import Action, ActionRequest
from tests.contrib.dashboard.conftest import OPEN, entered, served
from tests.contrib.dashboard.steps import do
from tests.pages import ROOT

PAGE = (ROOT / "docs" / "CONTRIBUTING.md").read_text("utf-8")
USE = """
import asyncio
import aioqless

async def main():
    async with aioqless.Client() as client:
        await client.put("app.jobs.greet", queue="mail", jid="first")
        await client.put("app.jobs.greet", queue="mail", jid="second")
        print(aioqless.__file__, await client.queue("mail").oldest())

asyncio.run(main())
"""


def example(language: str, start: str) -> str:
    """Return the example of a recipe that begins with these words."""
    block = PAGE.partition(f"```{language}\n    {start}")[2].partition("    ```")[0]
    return dedent(f"    {start}{block}")


def test_command_of_the_recipe_works(tmp_path: Path, redis_url: str, namespace: str) -> None:
    package = tmp_path / "aioqless"
    shutil.copytree(
        ROOT / "aioqless", package, ignore=shutil.ignore_patterns("__pycache__", "contrib")
    )
    generator = tmp_path / "tests"
    generator.mkdir()
    for name in ("__init__.py", "codegen.py"):
        shutil.copy(ROOT / "tests" / name, generator / name)
    (package / "lua" / "oldest.lua").write_text(example("lua", "-- oldest"))
    environment = {
        **os.environ,
        "PYTHONPATH": str(tmp_path),
        "AIOQLESS_URL": redis_url,
        "AIOQLESS_NAMESPACE": namespace,
    }

    def run(*arguments: str) -> str:
        return subprocess.run(
            [sys.executable, *arguments], check=True, timeout=60,
            cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True,
        ).stdout  # fmt: skip

    run("-m", "tests.codegen")
    assert "def oldest(self, *, queue: str) -> Call[str]" in (
        package / "store" / "generated_commands.py"
    ).read_text("utf-8")
    queue = package / "client" / "queue.py"
    code = queue.read_text("utf-8")
    method = indent(example("python", "async def oldest"), "    ")
    queue.write_text(code.replace("    async def ", f"{method}\n    async def ", 1))
    assert run("-c", USE) == f"{package}/__init__.py first\n"


async def test_action_of_the_recipe_works(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, Any] = {"ActionRequest": ActionRequest, "validation": validation}
    exec(example("python", "async def track_next"), names)
    monkeypatch.setitem(ACTIONS, "track-next", Action(names["track_next"], "Track next"))
    jid = await client.queue("mail").put("app.jobs.greet")
    async with (
        served(create_app(client, identify=OPEN)) as site,
        entered(site, headers={"Origin": site}) as http,
    ):
        assert f"Job {jid} is tracked." in await do(http, "track-next", queue="mail")
        assert "no job waits in none" in await do(http, "track-next", queue="none")
    tracked, _ = await client.jobs.tracked()
    assert [each.jid for each in tracked] == [jid]
