"""Hooks that are called when a queue lags behind."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import AsyncIterator, Callable

from redis import exceptions

from aioqless import validation
from aioqless.client import Client
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
            checks = _LagMonitor(client, queues, threshold).run(interval, fn, resources)
            task = asyncio.create_task(checks, name="aioqless lag")
            try:
                yield
            finally:
                await cancel_and_wait(task)

        return Resource(monitor, monitor, {"client": Client, **injected_parameters(fn)})

    return hook


class _LagMonitor:
    """Owns which queues are known to lag."""

    def __init__(self, client: Client, queues: tuple[str, ...], seconds: float) -> None:
        self._client = client
        self._queues = queues
        self._seconds = seconds
        self._lagging: set[str] = set()

    async def run(
        self, every: float, fn: Callable[..., object], resources: dict[str, object]
    ) -> None:
        """Check until canceled."""
        while True:
            # The worker logs the outage.
            with contextlib.suppress(*REDIS_UNAVAILABLE, exceptions.NoPermissionError):
                for queue, lag in await self._newly_lagging():
                    await _alert(fn, queue, lag, resources)
            await asyncio.sleep(every)

    async def _newly_lagging(self) -> list[tuple[str, float]]:
        queues = self._queues or tuple(counts.name for counts in await self._client.queues())
        lags = await self._client.internals.store.lag(queues=queues) if queues else []
        lagging = {
            queue: float(lag)
            for queue, lag in zip(queues, lags, strict=True)
            if lag > self._seconds
        }
        before, self._lagging = self._lagging, set(lagging)
        return [(queue, lag) for queue, lag in lagging.items() if queue not in before]


async def _alert(
    fn: Callable[..., object], queue: str, lag: float, resources: dict[str, object]
) -> None:
    log.warning("queue.lag_exceeded", queue=queue, seconds=round(lag, 3))
    try:
        result = fn(queue, lag, **resources)
        if inspect.isawaitable(result):
            await result
    except Exception as error:
        log.error(
            "hook.failed",
            hook=f"{fn.__module__}.{fn.__qualname__}",
            end="queue.lag_exceeded",
            error=validation.describe(error),
        )
