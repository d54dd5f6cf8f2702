"""Canceling tasks until they have ended."""

from __future__ import annotations

import asyncio

from aioqless.runtime.tasks import cancel_and_wait


async def _swallow_first_cancellation(started: asyncio.Event) -> None:
    """Swallow a cancellation, as `asyncio.wait_for` may before Python 3.12."""
    started.set()
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await asyncio.Event().wait()


async def test_task_that_swallows_a_cancellation_is_canceled_again() -> None:
    started = asyncio.Event()
    task = asyncio.create_task(_swallow_first_cancellation(started))
    await started.wait()
    async with asyncio.timeout(60):
        await cancel_and_wait(task, every=0.01)
    assert task.cancelled()


async def test_clean_up_shorter_than_the_interval_is_not_interrupted() -> None:
    started, cleaning, may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def clean_up() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaning.set()
            await may_end.wait()
            cleaned.append(True)

    cleaned: list[bool] = []
    task = asyncio.create_task(clean_up())
    await started.wait()
    closing = asyncio.create_task(cancel_and_wait(task, every=60))
    await cleaning.wait()
    assert not closing.done()
    may_end.set()
    await closing
    assert cleaned and task.cancelled()
