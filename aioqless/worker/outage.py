"""Outage: whether Redis can be reached, and when to try again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from redis import exceptions

from aioqless import validation
from aioqless.errors import AioqlessError
from aioqless.redis.connection import REDIS_UNAVAILABLE
from aioqless.runtime.log import log
from aioqless.runtime.tasks import wait_for_event
from aioqless.validation import Duration

# Errors after which a call may succeed later. Permissions may be withdrawn for a while; where they
# were missing from the start, the error is raised.
NOT_NOW = (*REDIS_UNAVAILABLE, exceptions.NoPermissionError)


@dataclass(frozen=True, kw_only=True)
class ReconnectDelays:
    """How long a worker waits before it tries again while Redis is unreachable.

    Args:
        first: Seconds before the first attempt; later delays grow.
        longest: Maximum delay in seconds.

    Raises:
        ValueError: A delay is out of range.
    """

    first: Duration = Duration(0.1, least=0.001)
    longest: Duration = Duration(5.0)

    def __post_init__(self) -> None:
        validation.check_number("reconnect.longest", self.longest, least=self.first)

    def after(self, away: float) -> float:
        """Return the seconds to wait when Redis has been unreachable for `away` seconds."""
        return min(self.first + away / 2, self.longest)


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
            self.log_lost(str(error))
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
            self.log_reconnected(round(self._answered - self._since, 3))
            self._since = None

    async def check_server(self, check: Callable[[], Awaitable[None]]) -> None:
        """Check the server before the first pop."""
        await check()

    def log_lost(self, error: str) -> None:
        """Log that an outage began."""
        log.error("worker.redis_lost", error=error)

    def log_reconnected(self, seconds: float) -> None:
        """Log that an outage has ended, and how long it was."""
        log.info("worker.redis_reconnected", seconds=seconds)
