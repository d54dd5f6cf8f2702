"""Workers, as Redis knows them, and orders to those that run."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from functools import partial
from typing import Any

from redis.asyncio import Redis

from aioqless import validation
from aioqless.client.job.summaries import WorkerGlance
from aioqless.errors import NotObeyed
from aioqless.redis.encoding import decode_json
from aioqless.redis.pubsub import subscribe
from aioqless.store import Call, Store

PATIENCE = 5.0


class Workers:
    """Workers as Redis knows them, by pops and heartbeats; and orders to a running one, by its
    name.

    What is ordered holds until the worker ends: a restarted one begins with its own settings. Each
    order returns what the worker does from then on: {queues, paused}. It raises NoSuchWorker when
    none listens under the name, NotObeyed when it refuses or doesn't answer within `patience`
    seconds."""

    def __init__(self, redis: Redis, store: Store, *, patience: float = PATIENCE) -> None:
        self._redis = redis
        self._store = store
        self._patience = patience

    async def counts(self) -> list[dict[str, Any]]:
        """[{name, jobs, stalled}], last seen first."""
        counts: list[dict[str, Any]] = await self._store.workers()
        return counts

    async def jobs(self, name: str) -> dict[str, list[str]]:
        """{jobs, stalled}: the jids that a worker holds, and those of them whose lock ran out."""
        held: dict[str, list[str]] = await self._store.workers(worker=name)
        return held

    async def working(self, *names: str, most: int = 3) -> list[WorkerGlance]:
        """What each of these workers does now, up to `most` jobs of each; at most 100 a call."""
        return [
            WorkerGlance.of(record)
            for record in await self._store.working(workers=names, most=most)
        ]

    async def deregister(self, *workers: str) -> None:
        """Take workers off the list of those known."""
        await self._store.deregister(workers=workers)

    async def listening(self, *names: str) -> set[str]:
        """Return those of the workers that listen for commands.

        Raises:
            redis.exceptions.NoPermissionError: The Redis user may not use PUBSUB.
        """
        channels = [f"{self._store.namespace}:w:{name}" for name in names]
        counts = await self._redis.pubsub_numsub(*channels) if channels else []
        return {name for name, (_, count) in zip(names, counts, strict=True) if count}

    async def show(self, name: str, *, timeout: float | None = None) -> dict[str, Any]:
        """Return what a running worker serves, and whether it is paused.

        Args:
            name: The worker.
            timeout: Seconds to wait for its answer; default: those of all orders.
        """
        return await self._order(name, "show", self._store.order_show, timeout=timeout)

    async def subscribe(
        self, name: str, queue: str, *, limit: int | None = None, weight: int | None = None
    ) -> dict[str, Any]:
        """Let a worker serve a queue, or all that match a pattern, from now on or under these
        terms."""
        return await self._order(
            name,
            "subscribe",
            partial(
                self._store.order_subscribe,
                queue=validation.check_name("queue", queue),
                limit=limit,
                weight=weight,
            ),
        )

    async def unsubscribe(self, name: str, queue: str) -> dict[str, Any]:
        """Let a worker serve a queue no longer; what runs of it goes on."""
        return await self._order(
            name, "unsubscribe", partial(self._store.order_unsubscribe, queue=queue)
        )

    async def quiet(self, name: str) -> dict[str, Any]:
        """Let a worker pop no more until `resume`; what runs goes on."""
        return await self._order(name, "quiet", self._store.order_quiet)

    async def resume(self, name: str) -> dict[str, Any]:
        """Let a worker pop again."""
        return await self._order(name, "resume", self._store.order_resume)

    async def stop(self, name: str) -> dict[str, Any]:
        """Let a worker pop no more and end when what runs has ended or was handed back. One of
        several processes is replaced."""
        return await self._order(name, "stop", self._store.order_stop)

    async def _order(
        self,
        worker: str,
        order: str,
        send: Callable[..., Call[int]],
        *,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        patience = self._patience if timeout is None else timeout
        answer = secrets.token_hex(8)
        async with subscribe(self._redis, f"{self._store.namespace}:x:answer:{answer}") as messages:
            await send(worker=worker, answer=answer)
            try:
                async with asyncio.timeout(patience):
                    _, payload = await anext(messages)
            except TimeoutError:
                raise NotObeyed(
                    f"worker {worker!r} heard {order} and did not answer within {patience} s: its loop is blocked, or it isn't "
                    "aioqless'. It may still obey"
                ) from None
        told: dict[str, Any] = decode_json(payload)
        if refused := told.get("refused"):
            raise NotObeyed(f"worker {worker!r} refused to {order}: {refused}")
        return told
