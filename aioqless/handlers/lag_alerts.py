"""Hooks that are called when a queue lags behind."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

from redis import exceptions

from aioqless import validation
from aioqless.client import Client
from aioqless.handlers.middleware_stack import call_hook
from aioqless.handlers.resources import Resource
from aioqless.handlers.signature import injected_parameters
from aioqless.redis.connection import REDIS_UNAVAILABLE
from aioqless.runtime.log import log
from aioqless.runtime.tasks import cancel_and_wait
from aioqless.validation import Seconds


def on_lag(
    seconds: Seconds, *queues: str, every: Seconds = 15.0
) -> Callable[[Callable[..., object]], Resource]:
    """Make a hook for lagging queues: `def alert(queue: str, seconds: float)`, async or not.

    A worker calls it when the next job of a queue has been waiting for more than `seconds`, and
    again only after the queue has caught up. It may take resources, as handlers do; what it raises
    is logged. Each worker that has it calls it.

    Args:
        seconds: The lag from which on the hook is called.
        queues: The queues to check; without any, all.
        every: Seconds between checks.

    Raises:
        ValueError: A value is out of range.
    """
    threshold = validation.check_seconds("seconds", seconds)
    interval = validation.check_seconds("every", every, least=0.01)
    for queue in queues:
        validation.check_name("queue", queue)

    def hook(fn: Callable[..., object]) -> Resource:
        async def monitor(client: Client, **resources: object) -> AsyncIterator[None]:
            call = partial(call_hook, fn, "queue.lag_exceeded", resources)
            checks = _monitor(client, queues, threshold, interval, call)
            task = asyncio.create_task(checks, name="aioqless lag")
            try:
                yield
            finally:
                await cancel_and_wait(task)

        return Resource(monitor, monitor, {"client": Client, **injected_parameters(fn)})

    return hook


async def _monitor(
    client: Client,
    queues: tuple[str, ...],
    threshold: float,
    interval: float,
    call: Callable[[str, float], Awaitable[None]],
) -> None:
    """Call a hook for each queue that begins to lag, until canceled."""
    lagging: list[str] = []
    while True:
        # The worker logs the outage.
        with contextlib.suppress(*REDIS_UNAVAILABLE, exceptions.NoPermissionError):
            names = queues or [counts.name for counts in await client.queues()]
            lags = dict(zip(names, await client.lags(*names), strict=True))
            before, lagging = lagging, [queue for queue in names if lags[queue] > threshold]
            for queue in lagging:
                if queue not in before:
                    log.warning("queue.lag_exceeded", queue=queue, seconds=round(lags[queue], 3))
                    await call(queue, lags[queue])
        await asyncio.sleep(interval)
