"""Waiting with a limit: for an event, and for the end of canceled tasks."""

from __future__ import annotations

import asyncio


async def happens(event: asyncio.Event, within: float | None) -> bool:
    """Wait for an event; whether it is set within so many seconds. None: however long it takes."""
    try:
        async with asyncio.timeout(
            within
        ):  # asyncio.wait_for would lose a cancellation that comes just when it is set
            return await event.wait()
    except TimeoutError:
        return False


async def cancel_and_wait(*tasks: asyncio.Task[object], every: float = 1.0) -> None:
    """Cancel tasks and wait until all have ended, canceling again every `every` seconds those that
    run.

    One cancellation may get lost in what a task awaits: `asyncio.wait_for` before Python 3.12
    swallows it when its own result arrives in the same event-loop iteration. `every` should exceed
    the time that the tasks need to clean up."""
    while running := [task for task in tasks if not task.done()]:
        for task in running:
            task.cancel()
        await asyncio.wait(running, timeout=every)
