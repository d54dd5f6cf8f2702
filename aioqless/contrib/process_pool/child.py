"""One process as the worker sees it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import TypeAlias

from aioqless.client.job import StopReason
from aioqless.contrib.process_pool.ipc import (
    LENGTH,
    Emission,
    JobReply,
    LockRenewed,
    ProgressReport,
    StopRequest,
    frame,
)
from aioqless.errors import ProcessDied
from aioqless.runtime import log

# Spawned rather than forked: a fork would copy the locks of the worker's threads and its loop in
# whatever state they are. Unlike with `multiprocessing`, the worker's main script is not run again.
PROGRAM = """
import sys
descriptor, logging, functions, *sys.path[:] = sys.argv[1:]
del sys.argv[1:]
from ast import literal_eval
from aioqless.contrib.process_pool.child_main import main
main(int(descriptor), literal_eval(logging), bytes.fromhex(functions))
"""


Receiver: TypeAlias = Callable[[Emission | ProgressReport], object]


class Child:
    """Owns a process and the socket to it.

    It performs one job at a time.

    Args:
        functions: References to the functions that it loads when it starts, pickled, in hex.
    """

    def __init__(self, functions: str) -> None:
        self.jobs = 0  # how many jobs it was given
        self.stopping = False  # whether it was asked to stop its job
        self._functions = functions
        self._usable = True
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._death: asyncio.Task[int] | None = None

    @property
    def alive(self) -> bool:
        """Whether it can be given a job."""
        return self._usable and not (self._death and self._death.done())

    @property
    def suspended(self) -> int:
        """Its pid if it is stopped by a signal, as by SIGSTOP; 0: it isn't, or can't be checked."""
        if self._process is not None and hasattr(os, "waitid"):  # not on macOS
            with contextlib.suppress(ChildProcessError):
                pid, flags = self._process.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT
                return pid if os.waitid(os.P_PID, pid, flags) else 0
        return 0

    async def start(self) -> None:
        """Start the process, unless it runs, and wait until it is ready.

        Raises:
            ProcessDied: It ended before.
        """
        if self._process is not None:
            return
        ours, theirs = socket.socketpair()
        with theirs:
            arguments = [str(theirs.fileno()), repr(log.written), self._functions, *sys.path]
            # -O, -X, -W: multiprocessing finds them in the same way, for there is no public one.
            flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # noqa: SLF001
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, *flags, "-c", PROGRAM, *arguments),
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # it is killed with all that its job has started
            )
        self._death = asyncio.ensure_future(self._process.wait())
        self._reader, self._writer = await asyncio.open_unix_connection(sock=ours)
        await self._reply()

    async def perform(self, request: bytes, receive: Receiver) -> JobReply:
        """Give it a job and wait for the reply; `receive` gets what the job emits and reports.

        Raises:
            ProcessDied: There is none; the process has ended.
        """
        assert self._writer
        self.jobs += 1
        self._writer.write(request)
        return await self._reply(receive)

    def stop(self, reason: StopReason) -> None:
        """Ask it to stop its job."""
        self.stopping = True
        if self._writer:
            self._writer.write(frame(StopRequest(reason)))

    def renew_lock(self, deadline: float) -> None:
        """Send it the new deadline of its job's lock, by time.monotonic."""
        if self._writer:
            self._writer.write(frame(LockRenewed(deadline)))

    def kill(self) -> None:
        """Kill it, and what its job has started."""
        self._usable = False
        if self._process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def end(self, kill_after: float) -> None:
        """Close its socket, on which it exits; kill it after `kill_after` seconds."""
        self._usable = False
        if self._writer and self._death:
            self._writer.close()
            await asyncio.wait([self._death], timeout=kill_after)
            if not self._death.done():
                self.kill()
            await self._ended()

    async def _ended(self) -> int:
        """Return its exit code, negative for the number of the signal that ended it."""
        assert self._writer and self._death
        code = await self._death
        self._writer.close()
        return code

    async def _reply(self, receive: Receiver = lambda _: None) -> JobReply:
        assert self._death
        received = asyncio.ensure_future(self._receive(receive))
        await asyncio.wait([received, self._death], return_when=asyncio.FIRST_COMPLETED)
        if received.done() and (reply := received.result()):
            return reply
        # A process that closed its socket can't be given another job; one that died may have left
        # children that still hold it.
        received.cancel()
        self.kill()
        raise ProcessDied(await self._ended())

    async def _receive(self, receive: Receiver) -> JobReply | None:
        assert self._reader
        while True:
            try:
                length = LENGTH.unpack(await self._reader.readexactly(LENGTH.size))[0]
                message: object = pickle.loads(await self._reader.readexactly(length))
            except (EOFError, OSError):
                return None
            if not isinstance(message, (Emission, ProgressReport)):
                return message if isinstance(message, JobReply) else None
            receive(message)
