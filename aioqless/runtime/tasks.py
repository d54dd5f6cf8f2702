"""Waiting for an event with a timeout, and for the end of canceled tasks."""

from __future__ import annotations

import asyncio


def is_on_loop(loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether the caller runs on an event loop; else it is in another thread."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


async def wait_for_event(event: asyncio.Event, timeout: float | None) -> bool:
    """Wait for an event and return whether it was set within `timeout` seconds (None: no limit)."""
    try:
        # asyncio.wait_for would lose a cancellation that arrives just when the event is set.
        async with asyncio.timeout(timeout):
            return await event.wait()
    except TimeoutError:
        return False


async def cancel_and_wait(*tasks: asyncio.Task[object], every: float = 1.0) -> None:
    """Cancel tasks and wait until all have ended, canceling again every `every` seconds.

    One cancellation may get lost in what a task awaits: `asyncio.wait_for` before Python 3.12
    swallows it when its own result arrives in the same event-loop iteration. `every` should exceed
    the time that the tasks need to clean up.
    """
    while running := [task for task in tasks if not task.done()]:
        for task in running:
            task.cancel()
        await asyncio.wait(running, timeout=every)
