"""What the parts of a worker have in common: settings, Lifecycle, and Outage of Redis."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from redis import exceptions

from aioqless.client import Client
from aioqless.errors import AioqlessError
from aioqless.redis.connection import REDIS_UNAVAILABLE
from aioqless.runtime.log import log
from aioqless.runtime.tasks import wait_for_event
from aioqless.store import ScriptStore
from aioqless.worker.settings import ReconnectDelays, Settings
from aioqless.worker.subscriptions import Subscription, check_weight

T = TypeVar("T")

STATM = Path("/proc/self/statm")
# Errors after which a call may succeed later. Permissions may be withdrawn for a while; where they
# were missing from the start, the error is raised.
NOT_NOW = (*REDIS_UNAVAILABLE, exceptions.NoPermissionError)


class Lifecycle:
    """Which queues a worker serves now, and how near its end is. Flags are never cleared.

    Attributes:
        subscriptions: What it serves, in order of preference; replaced when that changes.
        on_change: Called when that has changed, and when the worker is to stop.
    """

    def __init__(
        self, name: str, settings: Settings, on_stopping: Callable[[], object] | None = None
    ) -> None:
        self._name = name
        self.subscriptions = settings.subscriptions
        self.on_change: list[Callable[[], object]] = []
        self._order = settings.order
        self.recycling = False  # `max_jobs` or `max_memory` is reached: it is to stop
        self.stopping = False  # it pops no more, and ends when its runs have ended
        self.stopped_at = 0.0  # when `stopping` was set, by time.monotonic
        self.releasing = False  # it releases its runs, and waits for Redis only while locks last
        self.dropped = False  # outcomes were dropped since it is stopping
        self.jobs_left = settings.max_jobs or sys.maxsize  # how many jobs may still begin
        # Pollers, by what wakes them, and how many jobs could begin when each last found nothing.
        self._found_empty: dict[Callable[[], object], int | None] = {}
        self._max_memory = settings.max_memory
        self._on_stopping = on_stopping

    def subscribe(self, subscription: Subscription) -> None:
        """Serve a queue from now on, or with other limits.

        Raises:
            ValueError: It has a weight where the order is not weighted.
        """
        check_weight(subscription, self._order)
        named = {each.queue: each for each in (*self.subscriptions, subscription)}
        self.subscriptions = tuple(named.values())
        self._note_change()
        log.info("worker.subscribed", worker=self._name, queue=str(subscription))

    def unsubscribe(self, queue: str) -> None:
        """Stop serving a queue; a pop under way may still bring a job.

        Raises:
            ValueError: It is not subscribed by this name.
        """
        left = tuple(each for each in self.subscriptions if each.queue != queue)
        if len(left) == len(self.subscriptions):
            by = next((each.queue for each in left if each.matches(queue)), None)
            raise ValueError(
                f"queue {queue!r} is not subscribed"
                + (f" by its name, but by the pattern {by!r}" if by else "")
            )
        self.subscriptions = left
        self._note_change()
        log.info("worker.unsubscribed", worker=self._name, queue=queue)

    def _note_change(self) -> None:
        for call in self.on_change:
            call()

    def count_jobs(self, jobs: int) -> None:
        """Count jobs that begin, and compare with the limits."""
        self.jobs_left -= jobs
        why = None
        if self.jobs_left <= 0:
            why = "the maximum number of jobs has begun"
        elif self._max_memory is not None and (used := memory_in_use()) > self._max_memory:
            why = f"the process uses {used >> 20} MiB"
        if why and not self.recycling:
            self.recycling = True
            log.info("worker.recycling", why=why)

    def add_poller(self, wake: Callable[[], object]) -> None:
        """Add a poller without which a burst doesn't end.

        Args:
            wake: Makes it look again; it is known by this.
        """
        self._found_empty[wake] = None
        self.on_change.append(wake)

    def note_empty(self, wake: Callable[[], object], jobs_left: int) -> bool:
        """Note that a poller found no job while none ran; wake pollers that must look again.

        Args:
            wake: By which the poller is known.
            jobs_left: The attribute when its pop was sent: a job of another poller may have begun,
                ended and put one since.

        Returns:
            Whether a burst has ended: every poller found nothing since the last job began.
        """
        self._found_empty[wake] = jobs_left
        stale = [each for each, at in self._found_empty.items() if at != self.jobs_left]
        for wake_stale in stale:
            wake_stale()
        return not stale

    def stop(self) -> bool:
        """Begin the shutdown; return whether it had not begun yet."""
        if self.stopping:
            return False
        self.stopping, self.stopped_at = True, time.monotonic()
        if self._on_stopping is not None:
            self._on_stopping()
        self._note_change()
        return True

    def note_dropped(self) -> None:
        """Note that an outcome was dropped."""
        self.dropped = self.dropped or self.stopping

    def release(self) -> None:
        """Release runs from now on instead of waiting for them."""
        self.releasing = True


class Outage:
    """Tracks whether Redis can be reached.

    Every part reports how its calls went, so an outage is two lines of the log however many parts
    meet it.
    """

    def __init__(self, delays: ReconnectDelays | None = None) -> None:
        self._reached = False
        self._permitted = False  # whether Redis ever let this worker take jobs
        self._delays = delays or ReconnectDelays()
        self._answered = float("-inf")  # when the last answer came
        self._since: float | None = None
        self._back = asyncio.Event()

    @property
    def reached(self) -> bool:
        """Whether the last call was answered."""
        return self._reached

    def record_failure(self, error: Exception, asked: float) -> float:
        """Record a call that failed because Redis is unavailable.

        A failure of a call that was sent before Redis last answered another one says nothing about
        now: connections fail one after the other, and a thread or a busy loop may report late.

        Args:
            error: The error of the call.
            asked: When the call was sent, by time.monotonic.

        Returns:
            The seconds to wait until the next attempt, which grow.

        Raises:
            AioqlessError: Permissions are missing that this worker has never had.
            redis.exceptions.AuthenticationError: Redis refuses a login that has never worked; one
                that has is being changed, as tokens that expire are.
        """
        if isinstance(error, exceptions.AuthenticationError) and self._answered < 0:
            raise error
        if isinstance(error, exceptions.NoPermissionError) and not self._permitted:
            raise AioqlessError(
                f"the Redis user lacks permissions that a worker needs: {error}. "
                "`aioqless acl worker` prints a user that has them"
            )
        now = time.monotonic()
        if asked < self._answered:
            return self._delays.first
        self._reached = False
        self._back.clear()
        if self._since is None:
            self._since = now
            self.log("error", "worker.redis_lost", error=str(error))
        return self._delays.after(now - self._since)

    async def wait_after_failure(self, error: Exception, asked: float) -> None:
        """Record a failure and wait as long as it asks for, or until Redis answers another call."""
        await wait_for_event(self._back, self.record_failure(error, asked))

    def record_success(self, *, permitted: bool = False) -> None:
        """Record that Redis answered.

        Args:
            permitted: It let this worker take jobs.
        """
        self._reached = True
        self._permitted = self._permitted or permitted
        self._answered = time.monotonic()
        self._back.set()
        if self._since is not None:
            seconds = round(self._answered - self._since, 3)
            self.log("info", "worker.redis_reconnected", seconds=seconds)
            self._since = None

    def log(self, level: str, event: str, **fields: object) -> None:
        """Log that it has begun, or ended."""
        log.write(level, event, fields)


@dataclass(frozen=True)
class WorkerContext:
    """What most parts of a worker need; none of it is ever replaced.

    Args:
        client: The client of the namespace.
        name: The worker's name in Redis.
        settings: How the worker behaves.
        outage: Whether Redis can be reached.
        lifecycle: Whether the worker is recycling or stopping.
    """

    client: Client
    name: str
    settings: Settings
    outage: Outage
    lifecycle: Lifecycle

    @property
    def store(self) -> ScriptStore:
        """The commands of the namespace, on the connection that the client shares."""
        return self.client.internals.store


async def call_until_answered(context: WorkerContext, call: Callable[[], Awaitable[T]]) -> T | None:
    """Call until Redis answers; return None if the worker is stopped before."""
    while not context.lifecycle.stopping:
        asked = time.monotonic()
        try:
            return await call()
        except NOT_NOW as error:
            await context.outage.wait_after_failure(error, asked)
    return None


class Part(Protocol):
    """What runs beside a worker's jobs, from before the first to after the last.

    One that puts jobs has an attribute `caught_up`, too: while that is false, a burst does not end.
    """

    async def run(self, context: WorkerContext) -> None:
        """Work until canceled; an error stops the worker, and a return ends the part alone."""


def memory_in_use() -> int:
    """Return the process's memory in bytes; where the system does not tell, its peak."""
    import resource  # not on Windows

    if STATM.exists():
        return int(STATM.read_text().split()[1]) * resource.getpagesize()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10
