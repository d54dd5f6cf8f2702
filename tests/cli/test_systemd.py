"""Notifications to systemd: a service with Type=notify and WatchdogSec=."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from aioqless import Client
from aioqless.cli.systemd import ServiceState, SystemdNotifier, make_notifier
from tests.cli.conftest import Start
from tests.conftest import Until


class Systemd:
    """The socket that systemd reads, and what it has got."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.lines: list[str] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(address.replace("@", "\0"))

    def count(self, line: str) -> int:
        """How often it has got a line."""
        while True:
            try:
                self.lines += self._socket.recv(1 << 16).decode().splitlines()
            except BlockingIOError:
                return self.lines.count(line)

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[Systemd]:
    systemd = Systemd(str(tmp_path / "notify"))
    yield systemd
    systemd.close()


@pytest.mark.parametrize("processes", [[], ["-w", "1"]])
async def test_service_is_ready_when_it_takes_jobs_and_says_that_it_stops(
    start: Start, until: Until, environment: dict[str, str], systemd: Systemd, processes: list[str]
) -> None:
    environment |= {"NOTIFY_SOCKET": systemd.address, "WATCHDOG_USEC": "600000"}
    begun = "supervisor.started" if processes else "worker.started"
    async with start(*processes, begun=begun) as worker:
        await until(lambda: systemd.count("WATCHDOG=1") > 1)
        assert systemd.count("READY=1") == 1
        taking = "1 processes take jobs" if processes else "taking jobs"
        assert systemd.lines.index("READY=1") + 1 == systemd.lines.index(f"STATUS={taking}")
        worker.process.send_signal(signal.SIGTERM)
        assert await worker.ended() == 0
        assert systemd.count("STOPPING=1") == 1


async def test_service_that_waits_for_redis_is_starting(
    start: Start, until: Until, environment: dict[str, str], systemd: Systemd
) -> None:
    environment["NOTIFY_SOCKET"] = systemd.address
    async with start("--url", f"redis://127.0.0.1:1/{secrets.randbelow(1 << 30)}"):
        await until(lambda: systemd.count("EXTEND_TIMEOUT_USEC=30000000") > 1)
        assert systemd.count("STATUS=waiting for Redis") > 1
        assert systemd.count("READY=1") == 0


async def test_watchdog_is_not_fed_while_the_loop_is_blocked(
    start: Start,
    until: Until,
    environment: dict[str, str],
    systemd: Systemd,
    client: Client,
    folder: Path,
) -> None:
    environment |= {"NOTIFY_SOCKET": systemd.address, "WATCHDOG_USEC": "90000"}
    async with start():
        await until(lambda: systemd.count("WATCHDOG=1") > 1)
        await client.queue("mail").put("HoldUntil")
        await until((folder / "held").exists)
        before = systemd.count("WATCHDOG=1")
        await asyncio.sleep(0.3)
        assert systemd.count("WATCHDOG=1") == before
        (folder / "go").touch()
        await until(lambda: systemd.count("WATCHDOG=1") > before)


async def test_abstract_address_and_health_and_status_changes(until: Until) -> None:
    systemd = Systemd(f"@aioqless-{secrets.token_hex(8)}")
    state = ServiceState(True, False, "one")
    notifier = SystemdNotifier(systemd.address, watchdog=0.03)
    async with notifier.watch(lambda: state):
        await until(lambda: systemd.count("READY=1"))
        assert systemd.count("WATCHDOG=1") == 0
        state = ServiceState(False, True, "two")
        await until(lambda: systemd.count("WATCHDOG=1"))
        assert systemd.count("STATUS=two") == 1
    systemd.close()
    notifier.stopping()  # no reader


def test_variables_are_removed_and_a_foreign_watchdog_is_not_ours() -> None:
    assert make_notifier({}) is None
    assert make_notifier({"NOTIFY_SOCKET": "vsock:2:1"}) is None
    for process, interval in ((os.getpid(), 0.1), (os.getpid() + 1, 1.0)):
        environment = {
            "NOTIFY_SOCKET": "/run/systemd/notify",
            "WATCHDOG_USEC": "300000",
            "WATCHDOG_PID": str(process),
        }
        notifier = make_notifier(environment)
        assert isinstance(notifier, SystemdNotifier) and not environment
        assert notifier.interval == pytest.approx(interval)
