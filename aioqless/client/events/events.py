"""Events: the way to what happens in a namespace."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from redis.asyncio import Redis

from aioqless.client.events.filters import EventFilter
from aioqless.client.events.stream import Stream
from aioqless.redis.encoding import decode_text
from aioqless.redis.pubsub import TRACKED, Event, read_event, subscribe
from aioqless.store import Store


class Events:
    """The events of a namespace: typed, filtered and on and on by calling it; as they come by `all`
    and `tracked`."""

    def __init__(self, redis: Redis, store: Store) -> None:
        self._redis = redis
        self._store = store
        self._namespace = store.namespace
        self._closed = False

    def __call__(
        self,
        *,
        queue: str | Collection[str] | None = None,
        jid: str | Collection[str] | None = None,
        kind: str | Collection[str] | None = None,
        tracked: bool = False,
    ) -> Stream:
        """What happens from now on, to these queues, to these jobs, of these kinds, or to tracked
        jobs alone (the latest 1,000, and those that are tracked from now on):

        async for event in client.events(kind=["completed", "failed"]): ...

        It goes on when Redis was away; what happened meanwhile nobody kept, and an event Missed
        says so: whatever the filter. `when`, `since` and `until` are seconds since 1970 by this
        machine's clock, when it was heard. `queue` is None where neither the event nor one before
        it said which; with a filter of queues it is looked up. A reader that is so slow that Redis
        gives it up misses what came meanwhile, and hears of that too. Raises ValueError and
        TypeError for a filter that can't be, redis-py's ConnectionError when Redis isn't there at
        the beginning."""
        wanted = EventFilter.checked(queue, jid, kind, tracked)
        return Stream(self._redis, self._store, wanted, lambda: self._closed)

    def close(self) -> None:
        """Let streams end, rather than listen anew."""
        self._closed = True

    @asynccontextmanager
    async def all(self) -> AsyncIterator[AsyncIterator[Event]]:
        """Every event of every job, from when the block is entered:

        async with client.events.all() as events:
            async for event in events: ...
        """
        async with subscribe(self._redis, f"{self._namespace}:log") as messages:
            yield self._told(messages)

    @asynccontextmanager
    async def tracked(self) -> AsyncIterator[AsyncIterator[Event]]:
        """The events of tracked jobs alone."""
        async with subscribe(
            self._redis, *(f"{self._namespace}:{name}" for name in TRACKED)
        ) as messages:
            yield self._named(messages)

    async def _told(self, messages: AsyncIterator[tuple[str, bytes]]) -> AsyncIterator[Event]:
        async for _, payload in messages:
            if told := read_event(payload):
                yield Event(told.pop("event"), told.pop("jid", None), told)

    async def _named(self, messages: AsyncIterator[tuple[str, bytes]]) -> AsyncIterator[Event]:
        async for channel, payload in messages:
            yield Event(channel.removeprefix(f"{self._namespace}:"), decode_text(payload))
