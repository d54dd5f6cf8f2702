"""Workers whose log can't be written: closed or stalled readers, full disk, closed descriptors."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from aioqless import Client
from tests.cli.conftest import PATIENCE
from tests.conftest import Until

Spawn = Callable[..., "subprocess.Popen[bytes]"]

COMMAND = [sys.executable, "-m", "aioqless", "worker", "jobs", "-q", "mail", "--log-level", "debug"]
CLOSED = ["sh", "-c", 'exec "$@" 0<&- 1>&- 2>&-', "sh"]


@pytest.fixture
def spawn(folder: Path, environment: dict[str, str], namespace: str) -> Iterator[Spawn]:
    """Start a worker that writes to a descriptor, in its own process group.

    The group is killed at the end of the test.
    """
    started = []

    def spawn(
        output: int | None, *options: str, prefix: list[str] | None = None
    ) -> subprocess.Popen[bytes]:
        command = [*(prefix or []), *COMMAND, "--namespace", namespace, *options]
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield spawn
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture(
    params=["a reader that goes away", "a reader that stalls", "a full disk", "closed descriptors"]
)
def unwritable(
    request: pytest.FixtureRequest, spawn: Spawn
) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start a worker that cannot write to its log from the first line on."""
    if request.param == "closed descriptors":
        yield lambda *options: spawn(None, *options, prefix=CLOSED)
        return
    reader, writer = (
        (0, os.open("/dev/full", os.O_WRONLY)) if request.param == "a full disk" else os.pipe()
    )
    if request.param == "a reader that goes away":
        os.close(reader)
    elif request.param == "a reader that stalls":
        os.set_blocking(writer, False)
        with suppress(BlockingIOError):
            while True:
                os.write(writer, b"." * 4096)
        os.set_blocking(writer, True)
    yield lambda *options: spawn(writer, *options)
    os.close(writer)
    if request.param == "a reader that stalls":
        os.close(reader)


async def exit_code(process: subprocess.Popen[bytes]) -> int:
    async with asyncio.timeout(PATIENCE):
        return await asyncio.to_thread(process.wait)


async def completed(client: Client, until: Until, *jids: str) -> None:
    async def all_are() -> bool:
        return {job.state for job in await client.jobs.multiget(*jids)} == {"complete"}

    await until(all_are, PATIENCE)


async def test_jobs_run_and_sigterm_drains_with_an_unwritable_log(
    client: Client, unwritable: Callable[..., subprocess.Popen[bytes]], until: Until
) -> None:
    await client.queue("mail").put("Slow", jid="a")
    await client.queue("mail").put("Apart", jid="b")
    worker = unwritable("--shutdown-timeout", "5")
    await completed(client, until, "a", "b")
    await client.queue("mail").put("Slow", 0.5, jid="c")
    await until(lambda: _has_started(client, "c"))
    worker.terminate()
    assert await exit_code(worker) == 0
    await completed(client, until, "c")


@pytest.mark.long
async def test_supervisor_with_a_blocked_log_restarts_its_processes_and_they_end_with_it(
    client: Client, unwritable: Callable[..., subprocess.Popen[bytes]], until: Until
) -> None:
    await client.queue("mail").put("Slow", jid="a")
    supervisor = unwritable("-w", "2", "--shutdown-timeout", "5")
    await completed(client, until, "a")
    supervisor.send_signal(signal.SIGHUP)
    await client.queue("mail").put("Slow", 0.5, jid="b")
    await completed(client, until, "b")
    supervisor.kill()
    await exit_code(supervisor)
    await until(lambda: not _group_exists(supervisor.pid), PATIENCE)


async def test_supervisor_obeys_sigterm_when_the_reader_of_its_log_has_closed(
    client: Client, spawn: Spawn, until: Until
) -> None:
    reader, writer = os.pipe()
    supervisor = spawn(writer, "-w", "1", "--shutdown-timeout", "5")
    os.close(writer)
    os.close(reader)
    await client.queue("mail").put("Slow", jid="a")
    await completed(client, until, "a")
    supervisor.terminate()
    assert await exit_code(supervisor) == 0


@pytest.mark.long
async def test_dropped_log_lines_are_counted_once_the_log_is_writable_again(
    client: Client, spawn: Spawn, until: Until
) -> None:
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    worker = spawn(writer)
    os.close(writer)
    lines = b""
    try:
        for number in range(30):  # far more than the pipe's buffer
            await client.queue("mail").put("Slow", jid=f"a{number}")
        await completed(client, until, *[f"a{number}" for number in range(30)])
        os.set_blocking(reader, False)

        async def logged() -> bool:
            nonlocal lines
            await client.queue("mail").put("Slow")
            with suppress(BlockingIOError):
                lines += os.read(reader, 1 << 16)
            return b"log.lines_dropped" in lines

        await until(logged, PATIENCE)
        worker.terminate()
        assert await exit_code(worker) == 0
    finally:
        os.close(reader)


async def _has_started(client: Client, jid: str) -> bool:
    job = await client.jobs.get(jid)
    return job is not None and job.state in ("running", "complete")


def _group_exists(leader: int) -> bool:
    """Return whether any process of a session or of its child groups exists."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, IndexError):
            fields = status.read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader and fields[0] not in "ZX":  # the session
                return True
    return False
