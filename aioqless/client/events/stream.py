"""Stream: events of a namespace, through outages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Self

from redis import exceptions

from aioqless.client.events.filters import EventSelector
from aioqless.client.events.types import AnyEvent, Missed, parse_event
from aioqless.redis.encoding import decode_text
from aioqless.redis.pubsub import Gap, Subscriber, read_event

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds before Redis is tried again
# Channels of events that the log lacks; their messages are jids. `popped` and `stalled` have the
# events of tracked jobs only.
CHANNELS_BESIDE_THE_LOG = ("popped", "stalled", "track", "untrack")


class Stream:
    """Events of a namespace: `async for event in stream`.

    It listens from when the first event is asked for, or with `async with` from when the block is
    entered. It ends when the client is closed.
    """

    def __init__(
        self,
        subscriber: Subscriber,
        selector: EventSelector,
        is_closed: Callable[[], bool],
    ) -> None:
        self._subscriber = subscriber
        self._selector = selector
        self._is_closed = is_closed
        self._events: AsyncGenerator[AnyEvent | None, None] | None = None

    async def __aenter__(self) -> Self:
        self._events = self._listen()
        await anext(self._events)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._events is not None:
            await self._events.aclose()

    async def __aiter__(self) -> AsyncIterator[AnyEvent]:
        events = self._events or self._listen()
        try:
            async for event in events:
                if event is not None:
                    yield event
        finally:
            if events is not self._events:  # which the end of the block closes
                await events.aclose()

    async def _listen(self) -> AsyncGenerator[AnyEvent | None, None]:
        """Yield None once the subscription exists, then the events.

        Raises:
            redis.exceptions.RedisError: The first attempt failed.
            redis.exceptions.AuthenticationError: Redis refused the password.
        """
        latest, pause, reason = 0.0, FIRST_PAUSE, ""
        names = ("log", *CHANNELS_BESIDE_THE_LOG)
        while not self._is_closed():
            try:
                async with self._subscriber.listen(*names) as messages:
                    await self._selector.load_tracked()
                    now = time.time()
                    yield Missed(when=now, since=latest, until=now, why=reason) if reason else None
                    latest, pause = now, FIRST_PAUSE
                    async for message in messages:
                        latest = time.time()
                        if isinstance(message, Gap):
                            await self._selector.load_tracked()
                            yield Missed(
                                when=latest, since=message.since, until=latest, why=message.why
                            )
                        elif (
                            message[1]
                            and (event := _parse(*message, latest))
                            and (event := await self._selector.select(event))
                        ):
                            yield event
            except exceptions.AuthenticationError:
                raise
            except (exceptions.RedisError, OSError) as error:
                if not latest:
                    raise
                reason = reason if pause > FIRST_PAUSE else str(error) or type(error).__name__
            if not self._is_closed():
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)


def _parse(name: str, payload: bytes, when: float) -> AnyEvent | None:
    if name == "log":
        return parse_event(read_event(payload), when)
    return parse_event({"event": name, "jid": decode_text(payload)}, when)
