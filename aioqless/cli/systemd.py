"""Notifies systemd of the state of a service with `Type=notify`, and feeds its watchdog.

The protocol is a datagram of `NAME=value` lines to the socket that NOTIFY_SOCKET names.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import NamedTuple, TypeAlias

STARTING_INTERVAL = 0.1  # seconds between two looks at a service that is starting
INTERVAL = 1.0  # and at one that has started
EXTENSION = 30.0  # seconds that systemd waits for the next message of a service that is starting


class ServiceState(NamedTuple):
    """The state of a service.

    Attributes:
        started: Whether it works or is paused; once is enough.
        healthy: Whether to notify the watchdog.
        text: What `systemctl status` shows.
    """

    started: bool
    healthy: bool
    text: str


ReadState: TypeAlias = Callable[[], ServiceState]


class SystemdNotifier:
    """Notifies systemd.

    Args:
        address: Path of the socket; with `@` first, a name in the abstract namespace.
        watchdog: Seconds after which systemd kills a service that is silent; None: never.
    """

    def __init__(self, address: str, watchdog: float | None) -> None:
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self.interval = min(INTERVAL, watchdog / 3) if watchdog else INTERVAL

    def stopping(self) -> None:
        """Report that the graceful shutdown has started; callable from any thread."""
        self._send("STOPPING=1", "STATUS=finishing running jobs")

    @asynccontextmanager
    async def watch(self, read_state: ReadState) -> AsyncIterator[None]:
        """Report the state while in the block.

        It does so on the running loop: the watchdog isn't fed while that is blocked.
        """
        reporting = asyncio.create_task(self._report(read_state), name="aioqless systemd")
        try:
            yield
        finally:
            reporting.cancel()

    async def _report(self, read_state: ReadState) -> None:
        while not (state := read_state()).started:  # Redis being away is no reason to give up
            self._send(f"EXTEND_TIMEOUT_USEC={EXTENSION * 1e6:.0f}", f"STATUS={state.text}")
            await asyncio.sleep(STARTING_INTERVAL)
        shown = state.text
        self._send("READY=1", f"STATUS={shown}")
        while True:
            state = read_state()
            if state.healthy:
                self._send("WATCHDOG=1")
            if state.text != shown:
                shown = state.text
                self._send(f"STATUS={shown}")
            await asyncio.sleep(self.interval)

    def _send(self, *lines: str) -> None:
        with (
            contextlib.suppress(OSError),  # systemd isn't listening; notices are optional
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as unbound,
        ):
            unbound.setblocking(False)
            unbound.sendto("\n".join(lines).encode(), self._address)


def make_notifier(environment: MutableMapping[str, str] = os.environ) -> SystemdNotifier | None:
    """Return the notifier that the environment asks for; None without systemd.

    The variables are removed: what this process starts must not notify in its place.
    """
    address = environment.pop("NOTIFY_SOCKET", "")
    microseconds = environment.pop("WATCHDOG_USEC", "")
    process = environment.pop("WATCHDOG_PID", "")
    if not address.startswith(("/", "@")):
        return None
    watched = microseconds.isdecimal() and process in ("", str(os.getpid()))
    return SystemdNotifier(address, int(microseconds) / 1e6 if watched else None)
