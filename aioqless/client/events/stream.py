"""Listening on and on: events, through outages, and what was missed in them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Self

from redis import exceptions
from redis.asyncio import Redis

from aioqless.client.events.filters import EventFilter, EventSelector
from aioqless.client.events.types import AnyEvent, Missed, event_of
from aioqless.redis.encoding import decode_text
from aioqless.redis.pubsub import read_event, subscribe
from aioqless.store import Store

PAUSE, LONGEST = 0.1, 5.0  # seconds before Redis is tried again
BESIDE_THE_LOG = (
    "popped",
    "stalled",
    "track",
    "untrack",
)  # with the bare jid, and but for the last two of tracked jobs only


class Stream:
    """Events of a namespace: `async for event in stream`. With `async with` around it, it listens
    from when the block is entered; else from when the first event is asked for. It ends when the
    client is closed."""

    def __init__(
        self, redis: Redis, store: Store, wanted: EventFilter, closed: Callable[[], bool]
    ) -> None:
        self._redis = redis
        self._store = store
        self._sieve = EventSelector(wanted, store)
        self._closed = closed
        self._begun: AsyncGenerator[AnyEvent | None, None] | None = None

    async def __aenter__(self) -> Self:
        self._begun = self._events()
        await anext(self._begun)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._begun is not None:
            await self._begun.aclose()

    async def __aiter__(self) -> AsyncIterator[AnyEvent]:
        async with aclosing(self._begun or self._events()) as events:
            async for event in events:
                if event is not None:
                    yield event

    async def _events(self) -> AsyncGenerator[AnyEvent | None, None]:
        """None when listening has begun, then the events. Raises what a first attempt meets, and a
        refused password later too."""
        heard, pause, broke = 0.0, PAUSE, ""
        while not self._closed():
            try:
                async with subscribe(
                    self._redis, *self._channels(), report_silence=True
                ) as messages:
                    await self._sieve.begin()
                    now = time.time()
                    yield Missed(when=now, since=heard, until=now, why=broke) if broke else None
                    heard, pause = now, PAUSE
                    async for channel, payload in messages:
                        heard = time.time()
                        if (
                            payload
                            and (event := self._read(channel, payload, heard))
                            and (event := await self._sieve.passed(event))
                        ):
                            yield event
            except exceptions.AuthenticationError:
                raise
            except (exceptions.RedisError, OSError) as error:
                if not heard:
                    raise
                broke = broke if pause > PAUSE else str(error) or type(error).__name__
            if not self._closed():
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST)

    def _channels(self) -> list[str]:
        return [f"{self._store.namespace}:{name}" for name in ("log", *BESIDE_THE_LOG)]

    def _read(self, channel: str, payload: bytes, when: float) -> AnyEvent | None:
        name = channel.removeprefix(f"{self._store.namespace}:")
        return event_of(
            read_event(payload) if name == "log" else {"event": name, "jid": decode_text(payload)},
            when,
        )
