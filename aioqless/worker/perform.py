"""Call a handler, on the loop or in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from aioqless.handlers import Handlers, Surroundings
from aioqless.jobs import Job

ALONE = Surroundings()


async def perform(job: Job, handlers: Handlers, surroundings: Surroundings = ALONE, threads: anyio.CapacityLimiter | None = None) -> Any:
    """Find the job's handler and call it within what surrounds it; returns and raises what they do, UnknownKlass and InvalidData besides.

    Coroutines run on the loop, plain functions in a thread. A thread can't be cancelled: this returns when its code has stopped.
    """
    return await surroundings.around(job, partial(_called, job, handlers, surroundings, threads))


async def _called(job: Job, handlers: Handlers, surroundings: Surroundings, threads: anyio.CapacityLimiter | None) -> Any:
    handler = handlers.find(job.klass)
    call, arguments = handler.bound(job)
    arguments |= surroundings.resources.filled(handler.takes.given)
    if inspect.iscoroutinefunction(call):
        return await call(job, **arguments)
    result = await _in_thread(lambda: call(job, **arguments), threads or anyio.CapacityLimiter(1))
    return await result if inspect.isawaitable(result) else result


async def _in_thread(call: Callable[[], Any], threads: anyio.CapacityLimiter) -> Any:
    """Being cancelled while it waits for a thread, it doesn't call; from then on it ends as the call does."""
    async with threads:
        thread = asyncio.ensure_future(anyio.to_thread.run_sync(_end_of, call, limiter=anyio.CapacityLimiter(1)))
        while not thread.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([thread])
        result, error = thread.result()
        if error is not None:
            raise error
        return result


def _end_of(call: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """What a call returns or raises. A task must not end by SystemExit, or the loop ends with it."""
    try:
        return call(), None
    except BaseException as error:
        return None, error
