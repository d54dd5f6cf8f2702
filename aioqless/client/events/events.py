"""Events: the event stream of a namespace, as `client.events`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import TypeAlias

from redis import exceptions

from aioqless.client.events.filters import EventSelector
from aioqless.client.events.stream import Stream
from aioqless.redis.encoding import decode_text
from aioqless.redis.pubsub import TRACKED, Event, Gap, Subscriber, read_event
from aioqless.store import Store

Messages: TypeAlias = AsyncIterator[tuple[str, bytes] | Gap]


class Events:
    """The events of a namespace.

    Call it for typed, filtered events that continue after an outage. `all` and `tracked` yield
    events as they are published, and end with the connection.
    """

    def __init__(self, subscriber: Subscriber, store: Store) -> None:
        self._subscriber = subscriber
        self._store = store
        self._closed = False

    def __call__(
        self,
        *,
        queue: str | Collection[str] | None = None,
        jid: str | Collection[str] | None = None,
        kind: str | Collection[str] | None = None,
        tracked: bool = False,
    ) -> Stream:
        """Return a stream of the events from now on.

        Redis keeps no events. After an outage, or if the reader is so slow that Redis disconnects
        it, an event `Missed` says which period is missing; filters do not apply to it. Times are in
        seconds since 1970 by this machine's clock. The queue of an event is None if neither the
        event nor an earlier one of the job names it; with a filter of queues it is looked up.

        Example:
            async for event in client.events(kind=["completed", "failed"]): ...

        Args:
            queue: Names of queues.
            jid: Jids of jobs.
            kind: Kinds of events.
            tracked: Only tracked jobs: the latest 1,000, and those that are tracked from now on.

        Raises:
            TypeError: A name is not a string.
            ValueError: There is no such kind, or a name is not valid.
            redis.exceptions.ConnectionError: Redis can't be reached at the start.
        """
        selector = EventSelector(self._store, queue, jid, kind, tracked)
        return Stream(self._subscriber, selector, lambda: self._closed)

    def close(self) -> None:
        """End streams instead of letting them reconnect."""
        self._closed = True

    @asynccontextmanager
    async def all(self) -> AsyncIterator[AsyncIterator[Event]]:
        """Iterate over every event of every job from when the block is entered.

        Example:
            async with client.events.all() as events:
                async for event in events: ...
        """
        async with self._subscriber.listen("log") as messages:
            yield _read_log(messages)

    @asynccontextmanager
    async def tracked(self) -> AsyncIterator[AsyncIterator[Event]]:
        """Iterate over the events of tracked jobs from when the block is entered."""
        async with self._subscriber.listen(*TRACKED) as messages:
            yield _read_tracked(messages)


async def _read_tracked(messages: Messages) -> AsyncIterator[Event]:
    async for name, payload in _until_gap(messages):
        yield Event(name, decode_text(payload))


async def _read_log(messages: Messages) -> AsyncIterator[Event]:
    async for _, payload in _until_gap(messages):
        if event := read_event(payload):
            yield Event(event.pop("event"), event.pop("jid", None), event)


async def _until_gap(messages: Messages) -> AsyncIterator[tuple[str, bytes]]:
    async for message in messages:
        if isinstance(message, Gap):
            raise exceptions.ConnectionError(message.why)
        if message[0]:
            yield message
