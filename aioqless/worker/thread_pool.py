"""Run plain functions in threads."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import anyio
import anyio.to_thread

from aioqless.runtime.forks import exit_fork
from aioqless.worker.running_jobs import Run

Ended: TypeAlias = tuple[object, BaseException | None]  # what a call has returned, or raised


class ThreadPool:
    """Limits how many plain functions run at once.

    Args:
        size: Maximum number.
        run: Runs a call elsewhere than on the event loop; default: in a thread of anyio's.
    """

    def __init__(
        self, size: int = 1, run: Callable[[Callable[[], object]], Awaitable[Ended]] | None = None
    ) -> None:
        self._slots = anyio.CapacityLimiter(size)
        self._run = run or _run_in_thread

    async def perform(self, run: Run, call: Callable[[], object]) -> object:
        """Call a function in a thread, with the caller's context variables; return its result.

        If it is canceled while it waits for a thread, nothing is called. A thread can't be
        canceled: from then on this ends when the call does, which may check `job.stopped`.
        """
        with run.waiting():
            await self._slots.acquire_on_behalf_of(run)
        try:
            thread = asyncio.ensure_future(self._run(call))
            while not thread.done():
                try:
                    await asyncio.wait([thread])
                except asyncio.CancelledError:
                    if run.abandoned:
                        raise
        finally:
            self._slots.release_on_behalf_of(run)
        result, error = thread.result()
        if error is not None:
            raise error
        return result

    async def call(self, function: Callable[[], object]) -> object:
        """Call a function for a coroutine in a thread, with its context variables."""
        async with self._slots:
            result, error = await self._run(function)
        if error is not None:
            raise error
        return result


async def _run_in_thread(call: Callable[[], object]) -> Ended:
    return await anyio.to_thread.run_sync(run_call, call, limiter=anyio.CapacityLimiter(1))


def run_call(call: Callable[[], object]) -> Ended:
    """Return what a call returns or raises: a task that raises SystemExit would end the loop."""
    pid = os.getpid()
    try:
        return call(), None
    except BaseException as error:
        return None, error
    finally:
        if os.getpid() != pid:
            exit_fork()
