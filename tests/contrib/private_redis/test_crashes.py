"""A private server is started again when it dies, and loses no acknowledged write."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from redis import exceptions

from aioqless import Client
from aioqless.contrib.private_redis import ensure, find_server_binary, running, stop
from aioqless.contrib.private_redis.data_dir import DataDir, acquire_lock
from aioqless.contrib.private_redis.server_binary import record_writer
from tests.contrib.private_redis.users import (
    BRIEF,
    Writer,
    connect,
    fill,
    has_gone,
    parent_of,
    process_of,
    until,
)


@pytest.mark.parametrize("victim", ["server", "supervisor"])
def test_users_of_a_killed_server_or_supervisor_start_it_again_without_loss(
    place: Path, either_program: str, victim: str
) -> None:
    server = ensure(place)
    with Writer(server) as writer:
        for _ in range(2):
            process = process_of(server)
            outages = writer.reconnected
            os.kill(process if victim == "server" else parent_of(process), signal.SIGKILL)
            writer.wait_for_outage(outages)
            writer.wait_for_more()
            assert process_of(server) != process
    assert writer.lost == 0


def test_nothing_is_lost_when_all_processes_are_killed_at_once(
    place: Path, either_program: str
) -> None:
    server = ensure(place)
    with Writer(server) as writer:
        process = process_of(server)
        supervisor = parent_of(process)
        for victim in (supervisor, process):
            os.kill(victim, signal.SIGKILL)
        until(lambda: has_gone(place))
    assert ensure(place) == server
    with connect(server) as redis:
        assert int(redis.get("written") or 0) in (writer.acknowledged, writer.acknowledged + 1)


def test_users_start_the_server_again_when_a_full_disk_has_space(small_disk: Path) -> None:
    server = ensure(small_disk / "data")
    with Writer(server) as writer:
        filled, deaths = fill(small_disk), writer.reconnected
        until(lambda: writer.reconnected > deaths + 5)
        filled.unlink()
        writer.wait_for_more()
    assert writer.lost == 0


async def test_private_server_that_cannot_start_is_a_connection_error(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIOQLESS_DATA", str(place))
    for name in ("AIOQLESS_URL", "REDIS_URL", "AIOQLESS_HOST"):
        monkeypatch.delenv(name, raising=False)
    async with Client() as client:
        await client.queue("mail").put("Greet", jid="a")
        marker = DataDir(place).writer_file
        signed = marker.read_text()
        assert await asyncio.to_thread(stop, place, force=True)
        marker.unlink()
        with pytest.raises(exceptions.ConnectionError, match=r"server\.json"):
            await client.jobs.get("a")
        marker.write_text(signed)
        assert await client.jobs.get("a")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_server_shuts_down_cleanly_when_its_supervisor_is_killed(place: Path) -> None:
    os.kill(parent_of(process_of(ensure(place))), signal.SIGKILL)
    until(lambda: has_gone(place))
    assert "ready to exit" in DataDir(place).log_file.read_text()


def test_server_without_a_supervisor_gets_one_from_the_next_user(place: Path) -> None:
    place.mkdir(mode=0o700)
    lock = acquire_lock(DataDir(place).server_lock)
    assert lock is not None
    record_writer(DataDir(place), find_server_binary())
    command = [str(find_server_binary().path), *BRIEF.command_line()]
    orphan = subprocess.Popen(command, cwd=place, pass_fds=(lock,), stdout=subprocess.DEVNULL)
    os.close(lock)
    until(lambda: running(place))
    server, _ = running(place) or pytest.fail("it has ended")
    with connect(server) as redis:  # a user, without whom it may stop before it is looked at
        redis.ping()
        assert process_of(ensure(place, BRIEF)) == orphan.pid
    orphan.wait(timeout=60)
    until(lambda: has_gone(place))
