"""Processes of `python -m aioqless` in a directory with a module of handlers."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    contextmanager,
    redirect_stderr,
    redirect_stdout,
    suppress,
)
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import structlog

from aioqless import Client
from aioqless.cli.main import main
from tests.conftest import Until

ROOT = Path(__file__).parents[2]
# seconds: many tests wait for processes to start, several at once on a busy machine
PATIENCE = 60.0
MOST_TO_END = 40.0  # seconds for children of a killed supervisor, which end by themselves

JOBS = """
import asyncio, multiprocessing, os, signal, structlog, threading, time, aioqless

@aioqless.job(klass="Slow")
async def slow(job):
    await asyncio.sleep(job.data or 0)

@aioqless.job(klass="Wait")
async def wait(job):
    while not os.path.exists("go"):
        await asyncio.sleep(0.01)

@aioqless.job(klass="Stay")
async def stay(job):
    await asyncio.Event().wait()

@aioqless.job(klass="Block")
def block(job):
    time.sleep(600)

@aioqless.job(klass="Leave")
async def leave(job):
    threading.Thread(target=time.sleep, args=[600], name="left behind").start()

@aioqless.job(klass="Suppress")
async def suppress(job):
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            pass

@aioqless.job(klass="Apart", executor="process")
def apart(job):
    print("apart", os.getpid(), flush=True)
    structlog.get_logger().info("apart.told", process=os.getpid())
    time.sleep(600 if job.data else 0)

@aioqless.job(klass="Hold")
async def hold(job):
    time.sleep(job.data)

@aioqless.job(klass="HoldUntil")
async def hold_until(job):
    open("held", "w").close()
    while not os.path.exists("go"):
        time.sleep(0.01)

def _pooled(job):
    with multiprocessing.get_context("fork").Pool(2) as pool:
        job.data = pool.map(abs, [-1, -2])

pool = aioqless.job(klass="Pool")(_pooled)
pool_apart = aioqless.job(klass="PoolApart", executor="process")(_pooled)

@aioqless.job(klass="Fork")
async def fork(job):
    os.fork()

@aioqless.job(klass="ForkAndAwait")
async def fork_and_await(job):
    if os.fork() == 0:
        await asyncio.Event().wait()

@aioqless.job(klass="ForgetToAwait")
async def forget_to_await(job):
    job.log("nothing happens")


@aioqless.job(klass="ForkInThread")
def fork_in_thread(job):
    os.fork()

@aioqless.job(klass="Once")
async def once(job):
    if job.fence == 1:
        await asyncio.Event().wait()
"""


@dataclass
class Ended:
    """The exit code and output of an ended process."""

    code: int
    out: str
    err: str


@dataclass
class Running:
    """A worker's process, and its log so far."""

    process: asyncio.subprocess.Process
    lines: list[dict[str, Any]] = field(default_factory=list)

    def logged(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["event"] == event]

    async def ended(self) -> int:
        """Wait for the process' end and return its exit code."""
        async with asyncio.timeout(PATIENCE):
            return await self.process.wait()

    async def read(self) -> None:
        assert self.process.stderr
        while line := await self.process.stderr.readline():
            if line.startswith(b"{"):
                self.lines.append(json.loads(line))


Aioqless: TypeAlias = Callable[..., Awaitable[Ended]]
Start: TypeAlias = Callable[..., AbstractAsyncContextManager[Running]]


@pytest.fixture
def until(until: Until) -> Until:
    """Return the `until` of tests/conftest.py with a longer timeout."""
    return lambda condition, patience=PATIENCE: until(condition, patience)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "jobs.py").write_text(JOBS)
    return tmp_path


@pytest.fixture
def environment(redis_url: str) -> dict[str, str]:
    """Return the environment of commands.

    A worker finds modules in its working directory; only the package itself is on the path.
    """
    return {**os.environ, "PYTHONPATH": str(ROOT), "AIOQLESS_URL": redis_url}


@pytest.fixture
def aioqless(folder: Path, environment: dict[str, str], namespace: str) -> Aioqless:
    """Run one command to its end in its own process, in the test's namespace."""

    async def run(*arguments: str) -> Ended:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "aioqless", *arguments, "--namespace", namespace,
            cwd=folder, env=environment, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, err = await process.communicate()
        return Ended(process.returncode or 0, out.decode(), err.decode())

    return run


@pytest.fixture
def cli(redis_url: str, namespace: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Aioqless]:
    """Run one command to its end within the tests' process, which takes a fraction of the time."""
    monkeypatch.setenv("AIOQLESS_URL", redis_url)

    async def run(*arguments: str, in_namespace: bool = True) -> Ended:
        return await asyncio.to_thread(
            run_main, *arguments, *(["--namespace", namespace] if in_namespace else [])
        )

    with restored_process():
        yield run


@contextmanager
def restored_process() -> Iterator[None]:
    """Undo the changes that a command makes to its process."""
    path, argv, root = list(sys.path), sys.argv, logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        yield
    finally:
        sys.path[:], sys.argv = path, argv
        root.handlers[:] = handlers
        root.setLevel(level)
        structlog.reset_defaults()


def run_main(*arguments: str) -> Ended:
    """Run one command; its output must be text that a terminal can encode."""
    out, err = (
        io.TextIOWrapper(io.BytesIO(), "utf-8", errors, write_through=True)
        for errors in ("strict", "backslashreplace")
    )
    sys.argv = ["aioqless", *arguments]
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main()
    printed = [stream.buffer.getvalue().decode() for stream in (out, err)]
    return Ended(int(ended.value.code or 0), *printed)


@pytest.fixture
def start(folder: Path, environment: dict[str, str], client: Client, until: Until) -> Start:
    """Start a worker's process: `async with start("-q", "mail") as worker`.

    The block starts when the worker is ready. `before` is called in the process first. If the
    process still runs at its end, it is killed.
    """

    @asynccontextmanager
    async def start(
        *options: str,
        begun: str = "worker.started",
        before: Callable[[], object] | None = None,
    ) -> AsyncIterator[Running]:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "aioqless", "worker", "jobs", "-q", "mail", "--namespace",
            client.namespace, *options,
            cwd=folder, env=environment, stderr=asyncio.subprocess.PIPE, preexec_fn=before,
        )  # fmt: skip
        running = Running(process)
        reading = asyncio.create_task(running.read())
        try:
            await until(lambda: running.logged(begun))
            yield running
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            await asyncio.wait([reading], timeout=MOST_TO_END)
            left = (
                {}
                if reading.done()
                else {line["process"]: line["pid"] for line in running.logged("process.started")}
            )
            for pid in left.values():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            await reading
            assert not left, f"processes outlived their supervisor: {left}\n{running.lines}"

    return start
