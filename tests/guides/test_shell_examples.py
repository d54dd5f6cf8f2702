"""Every command line of the pages succeeds."""

from __future__ import annotations

import asyncio
import re
import shlex
import signal
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from aioqless import Client, Job, Settings, Worker, job
from aioqless.contrib import private_redis
from aioqless.contrib.durable.generated_commands import DurableCommands
from aioqless.contrib.http import Token
from aioqless.contrib.outbox import Outbox
from tests.cli.conftest import Aioqless, Ended, aioqless, cli, environment
from tests.pages import PAGES, command_lines, name_of
from tests.server import free_port

__all__ = ["aioqless", "cli", "environment"]  # fixtures

# Pages, or folders of pages, whose lines other tests run.
ELSEWHERE: Final = {
    "docs/get-started": "tests/examples/test_get_started.py",
    "docs/coming-from": "tests/examples/test_coming_from.py",
    "docs/lake-cluster.md": "tests/contrib/lake/test_pages.py",
    "docs/lake-pipeline.md": "tests/contrib/lake/test_pages.py",
    "docs/lake-readers.md": "tests/examples/test_lake_readers.py",
    "docs/lake.md": "tests/contrib/lake/test_pages.py",
    "docs/spark-source.md": "tests/contrib/lake/test_pages.py",
}
# Lines that start with these words are only parsed.
NOT_RUN: Final = {
    "top": "needs a terminal: tests/cli/test_top.py",
}
LINES: Final = sorted(
    {
        shlex.join(shlex.split(line, comments=True))
        for page in PAGES
        if not {name_of(page), str(Path(name_of(page)).parent)} & ELSEWHERE.keys()
        for line in command_lines(page)
        if line.split()[0] not in NOT_RUN
    }
)
WORKERS: Final = [line for line in LINES if line.startswith("worker ")]
SERVERS: Final = [line for line in LINES if line.split()[0] in ("api", "web")]
OF_PRIVATE_REDIS: Final = [line for line in LINES if line.split()[0] == "redis"]
COMMANDS: Final = sorted({*LINES} - {*WORKERS, *SERVERS, *OF_PRIVATE_REDIS})

# What the page sets before the command, or the command asks for.
VARIABLES: Final = (
    ("acl", "AIOQLESS_PASSWORD", "correct horse"),
    ("partitions", "AIOQLESS_PARTITIONS", "48"),
)

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
    for queue, group in (("mail", "mail-SMTPError"), ("billing", "charge-refused")):
        (popped,) = await client.queue(queue).pop()
        await DurableCommands(client.internals.store).step(
            jid=popped.jid, worker=popped.worker, kind="step", name="draft-1", result="1"
        )
        await popped.fail("refused", group=group)
    await client.put("app.jobs.greet", {"name": "Bob"}, queue="mail")
    await client.put("app.jobs.refund", {"order": 7}, queue="shop", jid="7b31f0")
    await client.queue("mail").recur("app.jobs.digest", every=3600, jid="app.jobs.digest")
    return client


async def words_of(line: str, folder: Path) -> list[str]:
    """Return the words of a line, with ports, addresses and a database of this machine.

    What would run until a signal ends after one round. Two processes stand for more.
    """
    line = re.sub(r"(--health|--metrics) \d+", lambda found: f"{found[1]} {free_port()}", line)
    line = re.sub(r"-w \d+", "-w 2", line)
    line = line.replace("0.0.0.0", "127.0.0.1").replace("/run/aioqless", str(folder))
    words = shlex.split(line)
    if words[0] == "outbox":
        words[1] = f"sqlite+aiosqlite:///{folder}/app.sqlite"
        engine = create_async_engine(words[1])
        async with engine.begin() as connection:
            await connection.run_sync(Outbox().table.metadata.create_all)
        await engine.dispose()
    return words + {"worker": ["--burst"], "api": ["--port", "0"], "web": ["--port", "0"]}.get(
        words[0], ["--once"] if words[0] in ("import", "outbox") else []
    )


@pytest.mark.parametrize("line", COMMANDS)
async def test_command_succeeds(
    line: str, cli: Aioqless, samples: Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @job(klass="app.jobs.greet")
    async def greet(job: Job) -> None: ...

    monkeypatch.setenv("EDITOR", str(folder / "editor"))
    monkeypatch.delenv("VISUAL", raising=False)
    for command, name, value in VARIABLES:
        if line.startswith(command):
            monkeypatch.setenv(name, value)
    words = await words_of(line, folder)
    async with AsyncExitStack() as stack:
        if "--wait" in words:
            await stack.enter_async_context(Worker(samples, [greet], settings=SERVES_MAIL))
        # partitions can't be made of a namespace that has jobs; a token has none
        in_namespace = words[0] not in ("acl", "partitions", "token")
        ended: Ended = await asyncio.wait_for(cli(*words, in_namespace=in_namespace), 60)
    assert ended.code == 0, ended.err


@pytest.mark.parametrize("line", WORKERS)
async def test_worker_runs_until_nothing_is_left(
    line: str, aioqless: Aioqless, samples: Client, folder: Path
) -> None:
    ended = await aioqless(*await words_of(line, folder))
    assert ended.code == 0, ended.err


@pytest.mark.parametrize("line", SERVERS)
async def test_server_starts(line: str, environment: dict[str, str], folder: Path) -> None:
    hashed = Token("shop", "x" * 32).hashes[0]
    (folder / "tokens.toml").write_text(
        f'[shop]\nsecret = "{hashed}"\nrole = "admin"\nmay_put = ["app.*"]\n'
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "aioqless", *await words_of(line, folder)),
        cwd=folder,
        env=environment,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr
    async with asyncio.timeout(60):
        while b"startup complete" not in (logged := await process.stderr.readline()):
            assert logged
    process.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(process.wait(), 60) == 0


@pytest.mark.long
async def test_commands_of_the_private_redis_succeed(
    environment: dict[str, str], tmp_path: Path
) -> None:
    assert OF_PRIVATE_REDIS
    own = {name: value for name, value in environment.items() if name != "AIOQLESS_URL"}
    try:
        await asyncio.to_thread(private_redis.ensure, tmp_path)
        for line in OF_PRIVATE_REDIS:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "aioqless", *shlex.split(line)),
                env={**own, "AIOQLESS_DATA": str(tmp_path)},
                stdout=asyncio.subprocess.DEVNULL,
            )
            assert await asyncio.wait_for(process.wait(), 60) == 0, line
    finally:
        private_redis.stop(tmp_path, force=True)


def test_lines_that_are_not_run_exist() -> None:
    lines = [line for page in PAGES for line in command_lines(page)]
    assert all(any(line.startswith(word) for line in lines) for word in NOT_RUN)
    root = Path(__file__).parents[2]
    assert [file for file in ELSEWHERE.values() if not (root / file).exists()] == []
