"""Plain functions run in threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread

from aioqless.worker.run import Run


class Threads:
    """Owns how many plain functions run at once."""

    def __init__(self, most: int = 1) -> None:
        self._slots = anyio.CapacityLimiter(most)

    async def perform(self, run: Run, call: Callable[[], Any]) -> Any:
        """Call in a thread, with the context variables of here; returns and raises what it does.

        Being cancelled while it waits for a thread, it doesn't call. A thread can't be cancelled:
        from then on this ends as the call does, which may look at `job.stopped`."""
        with run.waiting():
            await self._slots.acquire_on_behalf_of(run)
        try:
            thread = asyncio.ensure_future(
                anyio.to_thread.run_sync(_end_of, call, limiter=anyio.CapacityLimiter(1))
            )
            while not thread.done():
                try:
                    await asyncio.wait([thread])
                except asyncio.CancelledError:
                    if run.left:
                        raise
        finally:
            self._slots.release_on_behalf_of(run)
        result, error = thread.result()
        if error is not None:
            raise error
        return result


def _end_of(call: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """What a call returns or raises. A task must not end by SystemExit, or the loop ends with
    it."""
    try:
        return call(), None
    except BaseException as error:
        return None, error
