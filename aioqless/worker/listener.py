"""Listen for messages to this worker: lost locks, ready work, earlier ticks, remote commands."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from redis import exceptions

from aioqless.client import Client
from aioqless.redis.encoding import decode_text
from aioqless.redis.pubsub import read_event, subscribe
from aioqless.runtime.log import log
from aioqless.worker.lock_renewer import RenewerThread
from aioqless.worker.poller import Poller
from aioqless.worker.remote_control import RemoteControl
from aioqless.worker.scheduler import Scheduler

PAUSE = 1.0


class Listener:
    """Owns the subscription. Messages lost while it is broken are made up for by polling."""

    def __init__(
        self,
        client: Client,
        worker: str,
        renewer: RenewerThread,
        poller: Poller,
        remote_control: RemoteControl,
        scheduler: Scheduler | None = None,
    ) -> None:
        namespace = client.namespace
        self._redis = client.redis
        self._own = f"{namespace}:w:{worker}"
        self._ready = f"{namespace}:x:ready"
        self._retimed = f"{namespace}:x:retimed"
        self._log = f"{namespace}:log"
        self._renewer = renewer
        self._poller = poller
        self._remote_control = remote_control
        self._scheduler = scheduler

    async def run(self) -> None:
        """Listen until canceled."""
        async with asyncio.TaskGroup() as both:
            both.create_task(self._listen_always())
            both.create_task(self._listen_while_idle())

    async def _listen_always(self) -> None:
        channels = [self._own, self._ready, *([self._retimed] if self._scheduler else [])]
        while True:
            await self._listen(*channels)

    async def _listen_while_idle(self) -> None:
        """Follow the log channel while there is nothing to do.

        Other qless clients announce their puts only there, among everything else that happens.
        """
        while True:
            await self._poller.idle.wait()
            await self._listen(self._log)

    async def _listen(self, *channels: str) -> None:
        try:
            async with subscribe(self._redis, *channels) as messages:
                self._poller.wake()  # for what was put before the subscription existed
                if self._own in channels:
                    self._renewer.check_all()
                    if self._scheduler:
                        self._scheduler.wake()
                await self._follow(messages)
        except exceptions.RedisError as error:
            log.debug("listener.failed", error=str(error))
            await asyncio.sleep(PAUSE)

    async def _follow(self, messages: AsyncIterator[tuple[str, bytes]]) -> None:
        async for channel, payload in messages:
            if channel == self._ready:
                self._poller.wake(decode_text(payload))
            elif channel == self._retimed and self._scheduler:
                self._scheduler.wake()
            elif channel == self._log:
                self._wake_for_put(payload)
                if not self._poller.idle.is_set():
                    return
            else:
                await self._handle(payload)

    def _wake_for_put(self, payload: bytes) -> None:
        if b'"put"' in payload or b'"advanced"' in payload:
            event = read_event(payload)
            queue = event.get("to") or event.get("queue")
            self._poller.wake(queue if isinstance(queue, str) else None)

    async def _handle(self, payload: bytes) -> None:
        """Handle a message to this worker alone."""
        match message := read_event(payload):
            # The lock may only have expired: within the grace period it can still be renewed.
            case {"event": "canceled" | "lock_lost", "jid": str(jid)}:
                self._renewer.check(jid)
            case {"event": "order"}:
                await self._remote_control.handle(message)
