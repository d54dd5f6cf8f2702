"""Every command line of the guides succeeds."""

from __future__ import annotations

import asyncio
import shlex
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from aioqless import Client, Job, Settings, Worker, job
from tests.cli.conftest import Aioqless, Ended, aioqless, cli, environment
from tests.unit.pages import PAGES, command_lines

__all__ = ["aioqless", "cli", "environment"]  # fixtures

GUIDES = {
    "archive", "command-line", "configuration", "django", "embedding", "errors", "executors",
    "flask", "handlers", "limits", "locks", "managing-jobs", "middleware", "outbox", "putting",
    "queues", "recurring", "redis", "results", "retries", "shutdown", "testing",
    "troubleshooting", "typing", "unique-jobs", "workers", "workflows",
}  # fmt: skip
# The relay needs a database, `quiet` a worker: tests/contrib/outbox, tests/cli.
NOT_RUN = {"outbox", "quiet"}
LINES = sorted({line for page in PAGES if page.stem in GUIDES for line in command_lines(page)})
WORKERS = [line for line in LINES if line.startswith("worker ")]
COMMANDS = [line for line in LINES if line.split()[0] not in {"worker", *NOT_RUN}]

SERVES_MAIL = Settings(queues=["mail"])
JOBS = """
import aioqless

@aioqless.job
async def greet(job: aioqless.Job, name: str) -> None: ...

@aioqless.job(cron="0 9 * * *")
async def digest(job: aioqless.Job) -> None: ...
"""
# An editor that changes the name in the data.
EDITOR = """#!/bin/sh
sed -i s/Ada/Eve/ "$1"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a directory with the modules that the pages name."""
    for package, code in (("app", JOBS), ("more", JOBS.replace('cron="0 9', 'cron="0 8'))):
        (tmp_path / package).mkdir()
        (tmp_path / package / "jobs.py").write_text(code)
    (tmp_path / "editor").write_text(EDITOR)
    (tmp_path / "editor").chmod(0o700)
    return tmp_path


@pytest.fixture
async def samples(client: Client) -> Client:
    """Provide the jobs that the pages name."""
    await client.put("app.jobs.greet", {"name": "Ada"}, queue="mail", jid="4f2a9c")
    await client.put("app.jobs.charge", {"invoice": 7}, queue="billing")
    for queue, group in (("mail", "mail-SMTPError"), ("billing", "billing-Refused")):
        (popped,) = await client.queue(queue).pop()
        await popped.fail(group, "refused")
    await client.put("app.jobs.greet", {"name": "Bob"}, queue="mail")
    await client.queue("mail").recur("app.jobs.digest", every=3600, jid="app.jobs.digest")
    return client


@pytest.mark.parametrize("line", COMMANDS)
async def test_command_succeeds(
    line: str, cli: Aioqless, samples: Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @job(klass="app.jobs.greet")
    async def greet(job: Job) -> None: ...

    monkeypatch.setenv("EDITOR", str(folder / "editor"))
    monkeypatch.delenv("VISUAL", raising=False)
    words = shlex.split(line, comments=True)
    async with AsyncExitStack() as stack:
        if "--wait" in words:
            await stack.enter_async_context(Worker(samples, [greet], settings=SERVES_MAIL))
        ended: Ended = await asyncio.wait_for(cli(*words), 20)
    assert ended.code == 0, ended.err


@pytest.mark.parametrize("line", WORKERS)
async def test_worker_runs_until_nothing_is_left(
    line: str, aioqless: Aioqless, samples: Client
) -> None:
    ended = await aioqless(*shlex.split(line, comments=True), "--burst")
    assert ended.code == 0, ended.err
