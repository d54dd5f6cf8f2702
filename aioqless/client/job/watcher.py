"""JobWatcher: waits for changes of jobs, with one subscription for all callers of a client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from typing import TypeVar

from redis import exceptions

from aioqless import validation
from aioqless.redis.connection import REDIS_UNAVAILABLE
from aioqless.redis.encoding import decode_text
from aioqless.redis.pubsub import Gap, Subscriber, read_event
from aioqless.runtime.tasks import cancel_and_wait, wait_for_event
from aioqless.validation import Seconds

PAUSE = 0.5  # seconds before Redis is tried again
LAST_READ = 1.0  # seconds to read the state and what delays the job when the time is over
OUTPUT = "x:output"  # the channel of jobs that have emitted something
END_EVENTS = {"completed": b'"completed"', "failed": b'"failed"', "canceled": b'"canceled"'}

T = TypeVar("T")


class JobWatcher:
    """Waits for changes of jobs.

    Owns the waiting callers by jid, and the subscription, which exists only while there are any. A
    state is read after subscribing, so that no end is missed; after an outage, every state is read
    again.

    Args:
        subscriber: Listens for events.
        find_wait: Returns why a job has not ended.
        output: Whether callers wait for output of jobs, too.
    """

    def __init__(
        self,
        subscriber: Subscriber,
        find_wait: Callable[[str], Awaitable[object]],
        *,
        output: bool = False,
    ) -> None:
        self._subscriber = subscriber
        self._find_wait = find_wait
        self._channels = ("log", OUTPUT) if output else ("log",)
        self._changed: dict[str, set[asyncio.Event]] = {}
        self._every_event = 0  # number of callers that wait for more than the end
        self._listener: asyncio.Task[None] | None = None
        self._subscribed = False
        self._closed = False

    @property
    def is_idle(self) -> bool:
        """Whether no caller waits."""
        return not self._changed and not self._every_event

    @property
    def is_subscribed(self) -> bool:
        """Whether events arrive."""
        return self._subscribed

    async def wait_for_end(
        self,
        jid: str,
        read: Callable[[], Awaitable[T | None]],
        timeout: Seconds | None = None,
    ) -> T:
        """Wait until a job is complete or failed, also through outages; return what `read` returns.

        Args:
            jid: Jid of the job.
            read: Reads the job; returns None if it has not ended.
            timeout: Time to wait at most.

        Raises:
            TimeoutError: It has not ended, or could not be read, in time.
            redis.exceptions.ConnectionError: The client was closed.
        """
        seconds = None if timeout is None else validation.check_seconds("timeout", timeout)
        was_read, why = False, None
        try:
            async with (
                asyncio.timeout(seconds),
                aclosing(self.watch(jid, read)) as readings,
            ):
                async for reading in readings:
                    was_read = True
                    if reading is not None:
                        return reading
        except TimeoutError:
            with suppress(TimeoutError, exceptions.RedisError):
                async with asyncio.timeout(LAST_READ):
                    # so short a time says nothing about the job
                    if not was_read and (reading := await read()) is not None:
                        return reading
                    why = await self._find_wait(jid)
        reason = f": {why}" if why else ""
        raise TimeoutError(f"job {jid} is neither complete nor failed after {timeout} s{reason}")

    async def watch(
        self,
        jid: str,
        read: Callable[[], Awaitable[T]],
        *,
        every_event: bool = False,
        interval: float | None = None,
        again: Callable[[T], bool] = lambda _: False,
    ) -> AsyncGenerator[T, None]:
        """Yield what `read` returns, now and whenever the job has ended or changed; without end.

        Changes that come faster than they are read are seen once.

        Args:
            jid: Jid of the job.
            read: Reads the job.
            every_event: Read at every event of the job, not only when it has ended.
            interval: Seconds without an event after which it is read, too.
            again: Returns whether to read at once after this reading.

        Raises:
            redis.exceptions.ConnectionError: The client was closed.
        """
        with self._register(jid, every_event) as changed:
            while True:
                await wait_for_event(changed, interval)
                changed.clear()
                if self._closed:
                    raise exceptions.ConnectionError("the client was closed")
                try:
                    reading = await read()
                except REDIS_UNAVAILABLE as error:
                    if self._closed or isinstance(error, exceptions.AuthenticationError):
                        raise
                    await asyncio.sleep(PAUSE)
                    changed.set()
                else:
                    if again(reading):
                        changed.set()
                    yield reading

    async def aclose(self) -> None:
        """End the subscription; waiting callers get an error."""
        self._closed = True
        self._wake(*self._changed)
        if self._listener is not None:
            await cancel_and_wait(self._listener)

    @contextmanager
    def _register(self, jid: str, every_event: bool) -> Iterator[asyncio.Event]:
        changed = asyncio.Event()
        self._every_event += every_event
        self._changed.setdefault(jid, set()).add(changed)
        if self._subscribed or self._closed:
            changed.set()
        elif self._listener is None:
            self._listener = asyncio.create_task(self._listen(), name="aioqless job watcher")
        try:
            yield changed
        finally:
            self._every_event -= every_event
            self._changed[jid].discard(changed)
            if not self._changed[jid]:
                del self._changed[jid]
            if not self._changed and self._listener is not None:
                self._listener.cancel()
                self._listener, self._subscribed = None, False

    async def _listen(self) -> None:
        while True:
            try:
                async with self._subscriber.listen(*self._channels) as messages:
                    self._subscribed = True
                    self._wake(*self._changed)
                    await self._read_messages(messages)
            except exceptions.RedisError:
                self._subscribed = False
                await asyncio.sleep(PAUSE)

    async def _read_messages(self, messages: AsyncIterator[tuple[str, bytes] | Gap]) -> None:
        async for message in messages:
            if isinstance(message, Gap):
                self._wake(*self._changed)
                continue
            channel, payload = message
            if channel == OUTPUT:
                self._wake(*decode_text(payload).split("\n"))
                continue
            # Most messages concern no waiting caller: they are parsed only if they might.
            if self._every_event or any(end in payload for end in END_EVENTS.values()):
                event = read_event(payload)
                if self._every_event or event.get("event") in END_EVENTS:
                    self._wake(event.get("jid"))

    def _wake(self, *jids: str | None) -> None:
        for jid in jids:
            for changed in self._changed.get(jid or "", ()):
                changed.set()
