"""Hear what concerns this worker: a job that was taken away, work that is ready, a tick that comes
earlier, what it is told to do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from redis import exceptions

from aioqless.client import Client
from aioqless.log import log
from aioqless.redis.encoding import decode_text
from aioqless.redis.pubsub import read_event, subscribe
from aioqless.worker.poller import Poller
from aioqless.worker.remote_control import Orders
from aioqless.worker.renewer_thread import Heartbeater
from aioqless.worker.scheduler import Scheduler

PAUSE = 1.0


class Listener:
    """Owns the subscription. What is lost while it is broken, heartbeats, polls and ticks find."""

    def __init__(
        self,
        client: Client,
        worker: str,
        heartbeater: Heartbeater,
        poller: Poller,
        orders: Orders,
        scheduler: Scheduler | None = None,
    ) -> None:
        namespace = client.namespace
        self._redis = client.redis
        self._own = f"{namespace}:w:{worker}"
        self._ready = f"{namespace}:x:ready"
        self._retimed = f"{namespace}:x:retimed"
        self._log = f"{namespace}:log"
        self._heartbeater = heartbeater
        self._poller = poller
        self._orders = orders
        self._scheduler = scheduler

    async def run(self) -> None:
        """Listen until cancelled."""
        async with asyncio.TaskGroup() as both:
            both.create_task(self._listen_always())
            both.create_task(self._listen_while_idle())

    async def _listen_always(self) -> None:
        while True:
            await self._listen(
                self._own, self._ready, *([self._retimed] if self._scheduler else [])
            )

    async def _listen_while_idle(self) -> None:
        """Other qless clients tell of their puts only among everything else that happens: followed
        while there is nothing to do."""
        while True:
            await self._poller.idle.wait()
            await self._listen(self._log)

    async def _listen(self, *channels: str) -> None:
        try:
            async with subscribe(self._redis, *channels) as messages:
                self._poller.wake()  # for what was put before the subscription stood
                if self._own in channels:
                    self._heartbeater.doubt_all()
                    if self._scheduler:
                        self._scheduler.wake()
                await self._follow(messages)
        except exceptions.RedisError as away:
            log.debug("listener.failed", error=str(away))
            await asyncio.sleep(PAUSE)

    async def _follow(self, messages: AsyncIterator[tuple[str, bytes]]) -> None:
        async for channel, payload in messages:
            if channel == self._ready:
                self._poller.wake(decode_text(payload))
            elif channel == self._retimed and self._scheduler:
                self._scheduler.wake()
            elif channel == self._log:
                self._hear_of_put(payload)
                if not self._poller.idle.is_set():
                    return
            else:
                await self._told(payload)

    def _hear_of_put(self, payload: bytes) -> None:
        if b'"put"' in payload or b'"advanced"' in payload:
            event = read_event(payload)
            queue = event.get("to") or event.get("queue")
            self._poller.wake(queue if isinstance(queue, str) else None)

    async def _told(self, payload: bytes) -> None:
        match told := read_event(payload):
            case {
                "event": "canceled" | "lock_lost",
                "jid": str(jid),
            }:  # perhaps only lapsed: within the grace period it can be had back
                self._heartbeater.doubt(jid)
            case {"event": "order"}:
                await self._orders.obey(told)
