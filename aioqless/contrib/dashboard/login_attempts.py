"""Attempts to log in: how many are allowed, and in which order their passwords are hashed.

An attempt counts for its address, for its name at that address, and for its name. A user who has
logged in from an address before is never refused there for the attempts of others: such attempts
are only slowed down once they are many."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from limits import RateLimitItemPerHour, RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import FixedWindowRateLimiter

BY_ADDRESS = RateLimitItemPerMinute(30, namespace="address")
BY_PAIR = RateLimitItemPerMinute(5, namespace="pair")
BY_NAME = RateLimitItemPerHour(100, namespace="name")
MOST_WAITING = 16  # attempts in a queue, each of which takes some 60 ms
MOST_SLOWED = 5
SLOWED_BY = 1.0  # seconds


class TooMany(Exception):
    """An attempt that is not looked at."""


class Queue:
    """Lets one attempt in at a time. At most `most` wait or are in."""

    def __init__(self, most: int) -> None:
        self._lock = asyncio.Lock()
        self._most = most
        self.inside = 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for one's turn. Raises TooMany when too many wait already."""
        if self.inside >= self._most:
            raise TooMany
        self.inside += 1
        try:
            async with self._lock:
                yield
        finally:
            self.inside -= 1


class Attempts:
    """Owns the counts of attempts, and the queues for hashing: known addresses have one of their
    own, so strangers can't fill it."""

    def __init__(self) -> None:
        self._limiter = FixedWindowRateLimiter(MemoryStorage())
        self._strangers, self._known = Queue(MOST_WAITING), Queue(MOST_WAITING)
        self._slowed: dict[tuple[str, str], Queue] = {}

    @asynccontextmanager
    async def admitted(self, name: str, address: str, known: bool) -> AsyncIterator[None]:
        """Wait until a password may be hashed. Raises TooMany when the attempt is refused."""
        within = await self._limiter.hit(BY_ADDRESS, address) and await self._limiter.hit(
            BY_PAIR, name, address
        )
        if known:
            async with self._pause(name, address, within), self._known.turn():
                yield
        elif within and await self._limiter.hit(BY_NAME, name):
            async with self._strangers.turn():
                yield
        else:
            raise TooMany

    async def succeeded(self, name: str, address: str) -> None:
        """Forget the attempts at a name from an address: the last one was right."""
        await self._limiter.clear(BY_PAIR, name, address)

    @asynccontextmanager
    async def _pause(self, name: str, address: str, within: bool) -> AsyncIterator[None]:
        if within:
            yield
            return
        pair = (name, address)
        queue = self._slowed.setdefault(pair, Queue(MOST_SLOWED))
        try:
            async with queue.turn():
                await asyncio.sleep(SLOWED_BY)
                yield
        finally:
            if not queue.inside:
                self._slowed.pop(pair, None)


def network_of(address: str) -> str:
    """Return what counts as one address: of IPv6 the /64 network, which one customer has."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(parsed.ipv4_mapped or ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)
