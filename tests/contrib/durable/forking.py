"""Worker processes forked from one that has imported what they need, so that they start fast."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
from pathlib import Path

# A worker imports these when it starts.
import aioqless.cli.main
import aioqless.cli.worker_command
import aioqless.cli.worker_process
import aioqless.contrib.durable.run  # noqa: F401
from aioqless.__main__ import main
from tests.contrib.durable import programs

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([__name__])


class ForkedProcess:
    """A process, with the methods of asyncio's.

    Args:
        arguments: Of the command line of aioqless.
        ledger: The file of the handlers.
    """

    def __init__(self, arguments: list[str], ledger: Path) -> None:
        self._process = _CONTEXT.Process(target=_run, args=(arguments, ledger))
        self._process.start()
        assert self._process.pid is not None
        self._pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        os.kill(self._pid, number)

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()

    async def wait(self) -> int:
        await asyncio.to_thread(self._process.join)
        assert self._process.exitcode is not None
        return self._process.exitcode


def _run(arguments: list[str], ledger: Path) -> None:
    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
    programs.LEDGER = ledger
    sys.argv[1:] = arguments
    main()
