"""RunLock: for how long the calls to Redis that a handler makes are sent again."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import math
import time
from collections.abc import Awaitable, Callable
from contextvars import Context, ContextVar
from typing import NoReturn, Protocol, TypeVar

from redis import exceptions

from aioqless.redis.connection import REDIS_UNAVAILABLE

T = TypeVar("T")

MAX_PAUSE = 0.5  # seconds between two attempts
LONGEST_ELSEWHERE = 60.0  # seconds of attempts at another Redis than that of the lock


class RunLock(Protocol):
    """The lock of a run, while its handler is called."""

    def deadline(self) -> float:
        """Return until when it lasts at least, by time.monotonic; -inf if the run is to end."""

    def lose(self) -> None:
        """End the run, whose lock may be gone. May be called in any thread."""


class Unlimited:
    """Stands for the locks of all runs for which a batch is sent: each run waits on its own."""

    def deadline(self) -> float:
        """Return infinity."""
        return math.inf

    def lose(self) -> None:
        """Do nothing."""


# The lock of the run whose handler makes a call.
current_lock: ContextVar[RunLock | None] = ContextVar("run_lock", default=None)


def context_with(lock: RunLock | None) -> Context:
    """Return a context for tasks that several runs share, in place of that of the first one."""
    context = contextvars.copy_context()
    context.run(current_lock.set, lock)
    return context


async def repeat_while_locked(
    attempt: Callable[[], Awaitable[T]], lock: RunLock, why: Exception, *, until: float = math.inf
) -> T:
    """Make a call of a handler again that got no answer, until the lock may be gone.

    If the lock was renewed meanwhile, the call was not for the Redis that has it, or that Redis
    answers again: then attempts end LONGEST_ELSEWHERE seconds after the first one.

    Args:
        attempt: Makes the call again.
        lock: The lock of the run.
        why: The error of the first attempt.
        until: When the call must not be made again, by time.monotonic.

    Raises:
        asyncio.CancelledError: The run is to end.
        redis.exceptions.RedisError: The last attempt failed, and the run has its lock.
    """
    first, renewed_until = lock.deadline(), time.monotonic() + LONGEST_ELSEWHERE
    for number in itertools.count(1):
        locked_until, now = lock.deadline(), time.monotonic()
        renewed = locked_until != first
        deadline = min(locked_until, until, renewed_until if renewed else math.inf)
        if isinstance(why, exceptions.AuthenticationError):
            raise why
        if now >= deadline:
            if now < locked_until and (renewed or locked_until == math.inf):
                raise why
            await end_run(lock)
        await asyncio.sleep(min(0.05 * number, MAX_PAUSE, deadline - now))
        try:
            async with asyncio.timeout(deadline - now):
                return await attempt()
        except (*REDIS_UNAVAILABLE, TimeoutError) as broken:
            why = broken
    raise why


async def end_run(lock: RunLock) -> NoReturn:
    """End the run whose handler waits for a call, since its lock may be gone.

    Raises:
        asyncio.CancelledError: Always; `except Exception` doesn't catch it.
    """
    lock.lose()
    await asyncio.sleep(0)  # a coroutine is canceled here
    raise asyncio.CancelledError("the lock of the run may be gone")
