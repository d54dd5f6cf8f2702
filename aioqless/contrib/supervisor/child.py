"""One process of a worker, as its supervisor sees it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable
from typing import Self

from aioqless.contrib.supervisor.supervisor_pipe import PAUSED, READY
from aioqless.log import log

HUNG = 60.0  # seconds without a word until a process counts as hung
LAST_WORDS = (
    1.0  # seconds to hear what it said before its end; what it left running may hold the line
)

Command = Callable[
    [int, int, bool], list[str]
]  # of a process, by its number, its end of the line, and whether it starts paused


class Child:
    """Owns a process and the supervisor's end of its line."""

    def __init__(
        self, number: int, process: asyncio.subprocess.Process, line: socket.socket
    ) -> None:
        self.number = number
        self.end = asyncio.create_task(process.wait())
        self._process = process
        self._word: bytes | None = None  # the latest
        self._start = self._heard = asyncio.get_running_loop().time()
        self._working = asyncio.Event()
        self._hearing = asyncio.create_task(self._hear(line))
        log.info("process.started", process=number, pid=process.pid)

    @classmethod
    async def started(cls, number: int, command: Command, paused: bool) -> Self:
        """Start a process. In a group of its own: what is typed at the terminal goes to the
        supervisor alone, which passes it on once."""
        ours, theirs = socket.socketpair()
        with contextlib.ExitStack() as unless_started, theirs:
            unless_started.callback(ours.close)
            process = await asyncio.create_subprocess_exec(
                *command(number, theirs.fileno(), paused),
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                process_group=0,
            )
            unless_started.pop_all()
        return cls(number, process, ours)

    @property
    def began(self) -> bool:
        """Whether it ever said a word: its settings and its handlers' modules are in order."""
        return self._word is not None

    @property
    def age(self) -> float:
        """Seconds since its start."""
        return asyncio.get_running_loop().time() - self._start

    @property
    def ready(self) -> bool:
        """Whether it pops."""
        return self._word == READY and not self.end.done()

    @property
    def hung(self) -> bool:
        """Whether it has been silent for too long: its loop is blocked, or it doesn't get to its
        start."""
        return not self.end.done() and self.silence > HUNG

    @property
    def silence(self) -> float:
        """Seconds since its latest word."""
        return asyncio.get_running_loop().time() - self._heard

    async def works(self) -> bool:
        """Wait until it pops, or would but for a pause; False when it ended before."""
        working = asyncio.create_task(self._working.wait())
        await asyncio.wait([working, self.end], return_when=asyncio.FIRST_COMPLETED)
        working.cancel()
        return self._working.is_set() and not self.end.done()

    def tell(self, number: signal.Signals) -> None:
        """Send it a signal. Before its first word it knows none of ours, and would die of them."""
        if self.began or number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def ended(self) -> int:
        """Its exit code, when it has ended and all it said was heard; that of a signal is
        negative."""
        code = await asyncio.shield(self.end)
        await asyncio.wait([self._hearing], timeout=LAST_WORDS)
        return code

    async def _hear(self, line: socket.socket) -> None:
        reader, writer = await asyncio.open_unix_connection(sock=line)
        try:
            with contextlib.suppress(OSError):
                while words := await reader.read(64):
                    self._word = words[-1:]
                    self._heard = asyncio.get_running_loop().time()
                    if self._word in (READY, PAUSED) and not self._working.is_set():
                        self._working.set()
                        log.info("process.ready", process=self.number, seconds=round(self.age, 3))
        finally:
            writer.close()
