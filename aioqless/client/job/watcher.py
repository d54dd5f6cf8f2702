"""Who waits for the end of a job, or follows it closely, and the one subscription that all of a
client share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from typing import Any, TypeVar

from redis import exceptions
from redis.asyncio import Redis

from aioqless.errors import NoSuchJob
from aioqless.redis.connection import REDIS_UNAVAILABLE
from aioqless.redis.pubsub import read_event, subscribe
from aioqless.runtime.tasks import cancel_and_wait
from aioqless.store import Store

PAUSE = 0.5
ENDS = {"completed": b'"completed"', "failed": b'"failed"', "canceled": b'"canceled"'}
THROUGH = ("complete", "failed")

Seen = TypeVar("Seen")


class JobWatcher:
    """Owns who waits for which jobs, and the subscription, which stands only while somebody does.

    A state is read after the subscription stands, so no end is missed; when it broke, every state
    is read anew."""

    def __init__(self, redis: Redis, store: Store) -> None:
        self._redis = redis
        self._store = store
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._closely = 0  # how many want to hear of more than the end
        self._listening: asyncio.Task[None] | None = None
        self._stands = False
        self._closed = False

    async def wait_for_end(self, jid: str, timeout: float | None = None) -> None:
        """Return when the job is complete or failed. Raises NoSuchJob when there is none,
        TimeoutError, and redis-py's ConnectionError when the client is closed; while Redis is away
        it waits on."""
        try:
            async with (
                asyncio.timeout(timeout),
                aclosing(self.watch(jid, lambda: self._store.states(jids=[jid]))) as states,
            ):
                async for (state,) in states:
                    if not state:
                        raise NoSuchJob(
                            "wait",
                            "NOJOB",
                            {"jid": jid, "why": "there is no such job, or no longer"},
                        )
                    if state in THROUGH:
                        return
        except TimeoutError:
            raise TimeoutError(
                f"job {jid} is neither complete nor failed after {timeout} s"
            ) from None

    async def watch(
        self, jid: str, look: Callable[[], Awaitable[Seen]], *, closely: bool = False
    ) -> AsyncGenerator[Seen, None]:
        """What one sees of a job now, and whenever it came to an end, or `closely` whenever
        anything was told of it; without an end. What happens faster than it is looked at is seen
        once. Raises redis-py's ConnectionError when the client is closed."""
        with self._following(jid, closely) as heard:
            while True:
                await heard.wait()
                heard.clear()
                try:
                    seen = await look()
                except REDIS_UNAVAILABLE as away:
                    if self._closed or isinstance(away, exceptions.AuthenticationError):
                        raise
                    await asyncio.sleep(PAUSE)
                    heard.set()
                else:
                    yield seen

    @contextmanager
    def _following(self, jid: str, closely: bool) -> Iterator[asyncio.Event]:
        heard = asyncio.Event()
        self._closely += closely
        self._waiting.setdefault(jid, set()).add(heard)
        if self._stands or self._closed:
            heard.set()
        elif self._listening is None:
            self._listening = asyncio.create_task(self._listen(), name="aioqless job watcher")
        try:
            yield heard
        finally:
            self._closely -= closely
            self._waiting[jid].discard(heard)
            if not self._waiting[jid]:
                del self._waiting[jid]
            if not self._waiting and self._listening is not None:
                self._listening.cancel()
                self._listening, self._stands = None, False

    async def _listen(self) -> None:
        while True:
            try:
                async with subscribe(self._redis, f"{self._store.namespace}:log") as messages:
                    self._stands = True
                    self._wake(*self._waiting)
                    await self._follow(messages)
            except exceptions.RedisError:
                self._stands = False
                await asyncio.sleep(PAUSE)

    async def _follow(self, messages: AsyncIterator[tuple[str, bytes]]) -> None:
        async for _, payload in messages:
            # Most of what is told is of no interest here: it isn't even read, unless somebody
            # follows closely.
            if self._closely or any(end in payload for end in ENDS.values()):
                event: dict[str, Any] = read_event(payload)
                if self._closely or event.get("event") in ENDS:
                    self._wake(event.get("jid"))

    def _wake(self, *jids: str | None) -> None:
        for jid in jids:
            for heard in self._waiting.get(jid or "", ()):
                heard.set()

    async def aclose(self) -> None:
        """Let nobody wait any longer."""
        self._closed = True
        self._wake(*self._waiting)
        if self._listening is not None:
            await cancel_and_wait(self._listening)
