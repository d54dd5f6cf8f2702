"""Hooks that are told when a queue is late."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import AsyncIterator, Callable
from typing import Any

from redis import exceptions

from aioqless import validation
from aioqless.client import Client
from aioqless.handlers.resources import Resource
from aioqless.handlers.signature import given
from aioqless.log import log
from aioqless.redis.connection import UNAVAILABLE
from aioqless.waiting import cancel_and_wait


def on_lag(
    seconds: float, *queues: str, every: float = 15.0
) -> Callable[[Callable[..., Any]], Resource]:
    """Make a hook of `def late(queue: str, seconds: float)`, async or not: a worker calls it when
    the next job of a queue has been waiting for more than `seconds`, and again only when it has not
    been so meanwhile. It looks `every` so many seconds, at these queues or at all.

    It may take resources, as handlers do; what it raises is logged. Each worker that has it calls
    it."""
    validation.checked_number("seconds", seconds, least=0)
    validation.checked_number("every", every, least=0.01)
    for queue in queues:
        validation.checked("queue", queue)

    def hook(fn: Callable[..., Any]) -> Resource:
        async def watched(client: Client, **resources: Any) -> AsyncIterator[Any]:
            watch = asyncio.create_task(
                _Watch(client, queues, seconds).run(every, fn, resources), name="aioqless lag"
            )
            try:
                yield watch
            finally:
                await cancel_and_wait(watch)

        return Resource(
            watched, type(f"lag of {fn.__qualname__}", (), {}), {"client": Client, **given(fn)}
        )

    return hook


class _Watch:
    """Owns which queues were told of as late."""

    def __init__(self, client: Client, queues: tuple[str, ...], seconds: float) -> None:
        self._client = client
        self._queues = queues
        self._seconds = seconds
        self._late: set[str] = set()

    async def run(self, every: float, fn: Callable[..., Any], resources: dict[str, Any]) -> None:
        while True:
            with contextlib.suppress(
                *UNAVAILABLE, exceptions.NoPermissionError
            ):  # the worker tells of the outage
                for queue, lag in await self._newly_late():
                    await _tell(fn, queue, lag, resources)
            await asyncio.sleep(every)

    async def _newly_late(self) -> list[tuple[str, float]]:
        queues = self._queues or tuple(counts["name"] for counts in await self._client.queues())
        lags = await self._client.store.lag(queues=queues) if queues else []
        late = {
            queue: float(lag)
            for queue, lag in zip(queues, lags, strict=True)
            if lag > self._seconds
        }
        before, self._late = self._late, set(late)
        return [(queue, lag) for queue, lag in late.items() if queue not in before]


async def _tell(fn: Callable[..., Any], queue: str, lag: float, resources: dict[str, Any]) -> None:
    log.warning("queue.lag_exceeded", queue=queue, seconds=round(lag, 3))
    try:
        told = fn(queue, lag, **resources)
        if inspect.isawaitable(told):
            await told
    except Exception as error:
        log.error(
            "hook.failed",
            hook=f"{fn.__module__}.{fn.__qualname__}",
            end="queue.lag_exceeded",
            error=validation.describe(error),
        )
