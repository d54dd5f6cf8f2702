"""Whether Redis is away."""

from __future__ import annotations

import asyncio
import time

from redis import exceptions

from aioqless.errors import AioqlessError
from aioqless.log import log
from aioqless.redis.connection import UNAVAILABLE
from aioqless.waiting import happens

# What doesn't work now and may work later. Permissions may be withdrawn for a while; where they
# were missing from the start, the error is raised.
NOT_NOW = (*UNAVAILABLE, exceptions.NoPermissionError)


class Outage:
    """Owns since when Redis is away. Whatever part calls it says how that went, so an outage is two
    lines of the log whoever meets it."""

    def __init__(self, first: float = 0.1, most: float = 5.0) -> None:
        self._first = first
        self._most = most
        self.permitted = False  # whether Redis ever let it take jobs
        self.reached = False  # whether Redis answered last
        self._answered = float("-inf")  # when it did
        self._since: float | None = None
        self._back = asyncio.Event()

    def lost(self, error: Exception, asked: float) -> float:
        """Record that a call failed because Redis is away, and return the seconds to wait until the
        next try, which grow.

        A failure of a call that was sent (at `asked`, by time.monotonic) before Redis last answered
        another one says nothing of now: connections fail one after the other, and a thread or a
        busy loop may report late. The next try will tell.

        Raises AioqlessError when permissions are missing that the worker has never had.
        """
        if isinstance(error, exceptions.NoPermissionError) and not self.permitted:
            raise AioqlessError(
                f"the user of Redis lacks permissions that a worker needs: {error}. `aioqless acl worker` prints a user that has them"
            )
        now = time.monotonic()
        if asked < self._answered:
            return self._first
        self.reached = False
        self._back.clear()
        if self._since is None:
            self._since = now
            log.error("worker.redis_lost", error=str(error))
        return min(self._first + (now - self._since) / 2, self._most)

    async def pause(self, error: Exception, asked: float) -> None:
        """The same, and wait for so long, or until Redis has answered another call."""
        await happens(self._back, self.lost(error, asked))

    def found(self) -> None:
        """Redis answered."""
        self.reached = True
        self._answered = time.monotonic()
        self._back.set()
        if self._since is not None:
            log.info("worker.redis_reconnected", seconds=round(self._answered - self._since, 3))
            self._since = None
