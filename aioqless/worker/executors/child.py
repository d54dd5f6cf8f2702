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
from collections.abc import Sequence
from typing import Any

from aioqless import log
from aioqless.client.job import Reason
from aioqless.errors import ProcessDied
from aioqless.worker.executors.ipc import LENGTH, Answer, Stop, frame

# Started anew rather than forked: a fork would copy the worker's threads' locks and the loop in
# whatever state they are. The worker's main script isn't run again, unlike what `multiprocessing`
# does.
PROGRAM = """
import sys
descriptor, logging, modules, *sys.path[:] = sys.argv[1:]
del sys.argv[1:]
from ast import literal_eval
from aioqless.worker.executors.child_main import main
main(int(descriptor), literal_eval(logging), literal_eval(modules))
"""


class Child:
    """Owns a process and the socket to it. It imports its `modules` when it starts, and performs
    one job at a time."""

    def __init__(self, modules: Sequence[str] = ()) -> None:
        self.jobs = 0  # how many it was given
        self.stopping = False  # whether it was told to leave its job
        self._modules = list(modules)
        self._usable = True
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._death: asyncio.Task[int] | None = None

    @property
    def alive(self) -> bool:
        """Whether it can be given a job."""
        return self._usable and not (self._death and self._death.done())

    async def start(self) -> None:
        """Start the process, unless it runs, and wait until it is ready. Raises ProcessDied when it
        ends before."""
        if self._process is not None:
            return
        ours, theirs = socket.socketpair()
        with theirs:
            arguments = [str(theirs.fileno()), repr(log.written), repr(self._modules), *sys.path]
            flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # -O, -X, -W: as multiprocessing does
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, *flags, "-c", PROGRAM, *arguments),
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                # a group of its own: it is killed with all that its job has started
                start_new_session=True,
            )
        self._death = asyncio.ensure_future(self._process.wait())
        self._reader, self._writer = await asyncio.open_unix_connection(sock=ours)
        await self._answer()

    async def perform(self, order: bytes) -> Answer:
        """Give it a job and wait for the answer. Raises ProcessDied when there is none; then the
        process has ended."""
        assert self._writer
        self.jobs += 1
        self._writer.write(order)
        return await self._answer()

    def stop(self, reason: Reason) -> None:
        """Tell it that its job isn't to run any more."""
        self.stopping = True
        if self._writer:
            self._writer.write(frame(Stop(reason)))

    def kill(self) -> None:
        """End it at once, and what its job has started."""
        self._usable = False
        if self._process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def end(self, patience: float) -> None:
        """Let it end by itself, as it does when nobody talks to it any more; kill it after
        `patience` seconds."""
        self._usable = False
        if self._writer and self._death:
            self._writer.close()
            await asyncio.wait([self._death], timeout=patience)
            if not self._death.done():
                self.kill()
            await self._ended()

    async def _ended(self) -> int:
        """Its exit code, negative for the number of the signal that ended it."""
        assert self._writer and self._death
        code = await self._death
        self._writer.close()
        return code

    async def _answer(self) -> Answer:
        assert self._death
        received = asyncio.ensure_future(self._received())
        await asyncio.wait([received, self._death], return_when=asyncio.FIRST_COMPLETED)
        if received.done() and (answer := received.result()):
            return answer
        # A process that let go of its socket can't be given another job; one that died may have
        # left children that still hold it.
        received.cancel()
        self.kill()
        raise ProcessDied(await self._ended())

    async def _received(self) -> Answer | None:
        assert self._reader
        try:
            length = LENGTH.unpack(await self._reader.readexactly(LENGTH.size))[0]
            answer: Any = pickle.loads(await self._reader.readexactly(length))
        except (EOFError, OSError):
            return None
        return answer if isinstance(answer, Answer) else None
