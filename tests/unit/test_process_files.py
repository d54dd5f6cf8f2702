"""Locked files, by which processes of a machine see which others have ended."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aioqless.contrib.job_recovery import process_files
from aioqless.contrib.job_recovery.process_files import ProcessFile, lock_ended, lock_group

GROUP = "group"
Started = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the files of the test by themselves."""
    monkeypatch.setattr(process_files, "PARENT", tmp_path)
    return tmp_path / f"aioqless-{os.getuid()}"


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    """Start a process that has a file, and wait until it has: `started("then")`."""
    processes: list[subprocess.Popen[str]] = []

    def started(then: str) -> subprocess.Popen[str]:
        code = (
            "import os, pathlib, sys, time\n"
            "from aioqless.contrib.job_recovery import process_files\n"
            f"process_files.PARENT = pathlib.Path({str(tmp_path)!r})\n"
            f"file = process_files.ProcessFile.create({GROUP!r}, 'other', 'ann')\n"
            f"{then}\nprint('ready', flush=True)\ntime.sleep(600)\n"
        )
        process = subprocess.Popen([sys.executable, "-c", code], text=True, stdout=subprocess.PIPE)
        processes.append(process)
        assert process.stdout and process.stdout.readline() == "ready\n"
        return process

    yield started
    for process in processes:
        process.kill()
        process.communicate()


def ended() -> list[str]:
    """Return the texts of the files of ended processes, which stay as they are."""
    files = lock_ended(GROUP)
    for file in files:
        file.unlock()
    return [file.text for file in files]


def test_file_of_a_killed_process_is_found_and_that_of_a_running_or_stopped_one_is_not(
    started: Started,
) -> None:
    process = started("")
    assert ended() == []
    process.send_signal(signal.SIGSTOP)
    assert ended() == []
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert ended() == ["ann"], "a zombie has ended"
    process.wait()
    assert ended() == ["ann"]


def test_fork_keeps_the_file_of_an_ended_process_locked(started: Started, tmp_path: Path) -> None:
    child = tmp_path / "child"
    process = started(
        "if (child := os.fork()) == 0: time.sleep(600)\n"
        f"pathlib.Path({str(child)!r}).write_text(str(child))"
    )
    process.kill()
    process.wait()
    assert ended() == []
    os.kill(int(child.read_text()), signal.SIGKILL)
    while not ended():  # the kernel may need a moment
        pass


def test_own_file_is_not_found_and_a_removed_one_is_gone(folder: Path) -> None:
    file = ProcessFile.create(GROUP, "own", "bob")
    assert file and file.path.read_text() == "bob" and ended() == []
    file.remove()
    assert [*folder.iterdir()] == [] and ended() == []


def test_file_is_found_by_its_group_only() -> None:
    file = ProcessFile.create("another", "own", "bob")
    assert file
    file.unlock()
    assert ended() == [] and file.path.exists()


def test_file_is_locked_by_one_process_at_a_time() -> None:
    file = ProcessFile.create(GROUP, "own", "bob")
    assert file
    file.unlock()
    (first,) = lock_ended(GROUP)
    assert lock_ended(GROUP) == []
    first.remove()


def test_nothing_is_created_or_found_in_a_folder_that_others_may_write_to(folder: Path) -> None:
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    assert ProcessFile.create(GROUP, "own", "bob") is None
    assert ended() == []


def test_nothing_is_left_of_a_file_that_cannot_be_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, text: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    before = len([*Path("/proc/self/fd").iterdir()])
    assert ProcessFile.create("g", "a", "text") is None
    assert len([*Path("/proc/self/fd").iterdir()]) == before
    assert not [each for each in folder.rglob("*") if each.is_file()]


async def test_one_process_at_a_time_deals_with_a_group() -> None:
    assert ProcessFile.create(GROUP, "own", "bob")
    order: list[str] = []
    entered = asyncio.Event()

    async def second() -> None:
        await entered.wait()
        async with lock_group(GROUP) as locked:
            order.append(f"second {locked}")

    waiting = asyncio.create_task(second())
    async with lock_group(GROUP) as locked:
        entered.set()
        await asyncio.sleep(0)
        order.append(f"first {locked}")
    await waiting
    assert order == ["first True", "second True"]


async def test_group_that_stays_locked_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_files, "LOCK_TIMEOUT", 0)
    assert ProcessFile.create(GROUP, "own", "bob")
    async with lock_group(GROUP), lock_group(GROUP) as locked:
        assert not locked
