"""What a worker finds out about Redis: whether it can be reached, evicts keys, or fills up."""

from __future__ import annotations

import asyncio
import time

from redis import exceptions

from aioqless.errors import AioqlessError
from aioqless.redis.connection import REDIS_UNAVAILABLE
from aioqless.runtime.log import log
from aioqless.runtime.tasks import wait_for_event
from aioqless.store import ScriptStore, Store
from aioqless.worker.lifecycle import Lifecycle

# Errors after which a call may succeed later. Permissions may be withdrawn for a while; where they
# were missing from the start, the error is raised.
NOT_NOW = (*REDIS_UNAVAILABLE, exceptions.NoPermissionError)

SAFE_POLICY = "noeviction"
LONGEST_STARTUP_PAUSE = 0.5  # no stop is noticed during it
FIRST_ARCHIVE_CHECK = 60.0
ARCHIVE_CHECK_INTERVAL = 1800.0


class Outage:
    """Tracks whether Redis can be reached.

    Every part reports how its calls went, so an outage is two lines of the log however many parts
    meet it.
    """

    def __init__(self, first: float = 0.1, longest: float = 5.0) -> None:
        self.reached = False  # whether the last call was answered
        self._permitted = False  # whether Redis ever let this worker take jobs
        self._first = first
        self._longest = longest
        self._answered = float("-inf")  # when the last answer came
        self._since: float | None = None
        self._back = asyncio.Event()

    def record_failure(self, error: Exception, asked: float) -> float:
        """Record a call that failed because Redis is away.

        A failure of a call that was sent before Redis last answered another one says nothing about
        now: connections fail one after the other, and a thread or a busy loop may report late.

        Args:
            error: The error of the call.
            asked: When the call was sent, by time.monotonic.

        Returns:
            The seconds to wait until the next attempt, which grow.

        Raises:
            AioqlessError: Permissions are missing that this worker has never had.
        """
        if isinstance(error, exceptions.NoPermissionError) and not self._permitted:
            raise AioqlessError(
                f"the Redis user lacks permissions that a worker needs: {error}. "
                "`aioqless acl worker` prints a user that has them"
            )
        now = time.monotonic()
        if asked < self._answered:
            return self._first
        self.reached = False
        self._back.clear()
        if self._since is None:
            self._since = now
            log.error("worker.redis_lost", error=str(error))
        return min(self._first + (now - self._since) / 2, self._longest)

    async def wait_after_failure(self, error: Exception, asked: float) -> None:
        """Record a failure and wait as long as it asks for, or until Redis answers another call."""
        await wait_for_event(self._back, self.record_failure(error, asked))

    def record_success(self, *, permitted: bool = False) -> None:
        """Record that Redis answered.

        Args:
            permitted: It let this worker take jobs.
        """
        self.reached = True
        self._permitted = self._permitted or permitted
        self._answered = time.monotonic()
        self._back.set()
        if self._since is not None:
            log.info("worker.redis_reconnected", seconds=round(self._answered - self._since, 3))
            self._since = None


async def check_eviction(
    store: ScriptStore, outage: Outage, lifecycle: Lifecycle, *, allowed: bool
) -> None:
    """Refuse a Redis whose `maxmemory-policy` evicts keys; wait while Redis is away.

    Raises:
        AioqlessError: It evicts keys, and that is not allowed.
    """
    while not lifecycle.stopping:
        asked = time.monotonic()
        try:
            policy = await _eviction_policy(store)
        except REDIS_UNAVAILABLE as error:
            await asyncio.sleep(min(outage.record_failure(error, asked), LONGEST_STARTUP_PAUSE))
            continue
        except exceptions.ResponseError as error:  # a user without INFO
            log.warning("worker.eviction_unknown", error=str(error))
            return
        outage.record_success()
        if policy == SAFE_POLICY:
            return
        if not allowed:
            raise AioqlessError(
                f"Redis has maxmemory-policy {policy}: when its memory is full it deletes keys, "
                f"and with them jobs. Set it to {SAFE_POLICY} (CONFIG SET maxmemory-policy "
                f"{SAFE_POLICY}, and in redis.conf), use a Redis that has no other users, or "
                "accept the loss: --allow-eviction, Settings(allow_eviction=True)"
            )
        log.warning("worker.eviction_allowed", policy=policy)
        return


async def _eviction_policy(store: ScriptStore) -> str:
    info: bytes = await store.connection.execute("INFO", "memory")
    lines = dict(line.split(":", 1) for line in info.decode().splitlines() if ":" in line)
    return lines.get("maxmemory_policy", SAFE_POLICY)


class ArchiveMonitor:
    """Warns when nothing consumes the archive stream, before it fills Redis or is cut."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def run(self) -> None:
        """Check until canceled. Without permission nothing is found."""
        pause = FIRST_ARCHIVE_CHECK
        while True:
            await asyncio.sleep(pause)
            pause = ARCHIVE_CHECK_INTERVAL
            try:
                await self.check()
            except NOT_NOW:
                continue  # other parts log it

    async def check(self) -> None:
        """Warn if something is wrong."""
        from aioqless.client.archive import Archive  # workers start without it

        if trouble := (await Archive(self._store).state()).trouble(time.time()):
            log.warning("archive.unread", why=trouble)
