"""A worker process, as its supervisor sees it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import socket
from typing import Protocol, Self

from aioqless.cli.status_reporter import NUMBER_VARIABLE, PAUSED, READY
from aioqless.runtime.log import log


class ProcessCommand(Protocol):
    """What makes the command line of a worker process."""

    def __call__(
        self, number: int, status_fd: int, *, paused: bool, id: str, after: str
    ) -> list[str]:
        """Return the command line.

        Args:
            number: The number of the process.
            status_fd: The descriptor of the socket to its supervisor.
            paused: Whether it starts paused.
            id: What tells it from others of its name.
            after: The ids of processes that had this number and have ended, separated by spaces.
        """


HUNG_AFTER = 60.0  # seconds without a report until a process counts as hung
# seconds to read the last reports of an ended process; processes it left may keep the socket open
DRAIN_TIMEOUT = 1.0


class Child:
    """Owns a process and the supervisor's end of its status socket.

    Attributes:
        number: its number, which no other living process of the supervisor has.
        id: what tells it from all other processes.
        exit_task: returns its exit code.
    """

    def __init__(
        self,
        number: int,
        id: str,
        process: asyncio.subprocess.Process,
        status_socket: socket.socket,
    ) -> None:
        self.number = number
        self.id = id
        self.exit_task = asyncio.create_task(process.wait())
        self._process = process
        self._status: bytes | None = None  # the latest
        self._started_at = self._reported_at = asyncio.get_running_loop().time()
        self._working = asyncio.Event()
        self._reader = asyncio.create_task(self._read_statuses(status_socket))
        log.info("process.started", process=number, pid=process.pid)

    @classmethod
    async def start(cls, number: int, command: ProcessCommand, paused: bool, after: str) -> Self:
        """Start a process; `after`: ids of ended processes that had this number.

        It has a process group of its own: Ctrl-C at the terminal goes to the supervisor alone,
        which passes it on once.
        """
        ours, theirs = socket.socketpair()
        id = secrets.token_hex(8)
        with contextlib.ExitStack() as unless_started, theirs:
            unless_started.callback(ours.close)
            process = await asyncio.create_subprocess_exec(
                *command(number, theirs.fileno(), paused=paused, id=id, after=after),
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                process_group=0,
                env={**os.environ, NUMBER_VARIABLE: str(number)},
            )
            unless_started.pop_all()
        return cls(number, id, process, ours)

    @property
    def has_reported(self) -> bool:
        """Whether it ever sent a report: its settings and its handlers' modules are valid."""
        return self._status is not None

    @property
    def has_worked(self) -> bool:
        """Whether it ever took jobs or was paused."""
        return self._working.is_set()

    @property
    def age(self) -> float:
        """Seconds since its start."""
        return asyncio.get_running_loop().time() - self._started_at

    @property
    def ready(self) -> bool:
        """Whether it takes jobs."""
        return self._status == READY and not self.exit_task.done()

    @property
    def working(self) -> bool:
        """Whether it takes jobs or is paused."""
        return self._status in (READY, PAUSED) and not self.exit_task.done()

    @property
    def hung(self) -> bool:
        """Whether it sent no report for too long: its loop is blocked, or it doesn't start."""
        return not self.exit_task.done() and self.silence > HUNG_AFTER

    @property
    def silence(self) -> float:
        """Seconds since its latest report."""
        return asyncio.get_running_loop().time() - self._reported_at

    async def wait_until_working(self) -> bool:
        """Wait until it takes jobs or is paused; return False if it ended before."""
        working = asyncio.create_task(self._working.wait())
        await asyncio.wait([working, self.exit_task], return_when=asyncio.FIRST_COMPLETED)
        working.cancel()
        return self._working.is_set() and not self.exit_task.done()

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal; before its first report only those that end it, since any would."""
        if self.has_reported or number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def wait(self) -> int:
        """Wait until it has ended and its reports are read.

        Returns:
            Its exit code; that of a signal is negative.
        """
        code = await asyncio.shield(self.exit_task)
        await asyncio.wait([self._reader], timeout=DRAIN_TIMEOUT)
        return code

    async def _read_statuses(self, status_socket: socket.socket) -> None:
        reader, writer = await asyncio.open_unix_connection(sock=status_socket)
        try:
            with contextlib.suppress(OSError):
                while statuses := await reader.read(64):
                    self._status = statuses[-1:]
                    self._reported_at = asyncio.get_running_loop().time()
                    if self._status in (READY, PAUSED) and not self._working.is_set():
                        self._working.set()
                        log.info(
                            "process.became_ready",
                            process=self.number,
                            seconds=round(self.age, 3),
                        )
        finally:
            writer.close()
