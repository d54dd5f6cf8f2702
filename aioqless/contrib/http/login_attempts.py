"""Rate limits of logins, and the order in which passwords are verified.

An attempt counts for its network address, for its name at that address, and for its name. A user
who has logged in from an address before is never refused there because of attempts of others: such
attempts are only slowed down once they are many.
"""

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
LOGGED = RateLimitItemPerMinute(1, namespace="logged")
BY_NAME = RateLimitItemPerHour(100, namespace="name")
MAX_WAITING = 16  # attempts in a queue, each of which takes about 60 ms
MAX_SLOWED = 5
DELAY = 1.0  # seconds


class TooManyAttempts(Exception):
    """An attempt that is refused without a look at its password."""


class AttemptQueue:
    """Lets one attempt in at a time; at most `max_size` wait or are in."""

    def __init__(self, max_size: int) -> None:
        self._lock = asyncio.Lock()
        self._max_size = max_size
        self.size = 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn; raise TooManyAttempts when the queue is full."""
        if self.size >= self._max_size:
            raise TooManyAttempts
        self.size += 1
        try:
            async with self._lock:
                yield
        finally:
            self.size -= 1


class LoginAttempts:
    """Owns the counts of attempts, and the queues for hashing.

    Known addresses have a queue of their own, which strangers can't fill.
    """

    def __init__(self) -> None:
        self._limiter = FixedWindowRateLimiter(MemoryStorage())
        self._strangers, self._known = AttemptQueue(MAX_WAITING), AttemptQueue(MAX_WAITING)
        self._slowed: dict[tuple[str, str], AttemptQueue] = {}

    @asynccontextmanager
    async def admit(self, name: str, address: str, known: bool) -> AsyncIterator[None]:
        """Wait until a password may be hashed; raise TooManyAttempts."""
        within = await self._limiter.hit(BY_ADDRESS, address) and await self._limiter.hit(
            BY_PAIR, name, address
        )
        if known:
            async with self._delay(name, address, within), self._known.turn():
                yield
        elif within and await self._limiter.hit(BY_NAME, name):
            async with self._strangers.turn():
                yield
        else:
            raise TooManyAttempts

    async def is_first_refusal(self, address: str) -> bool:
        """Return whether no other refusal of this minute was logged for an address."""
        return await self._limiter.hit(LOGGED, address)

    async def clear(self, name: str, address: str) -> None:
        """Forget the attempts at a name from an address, after a successful login."""
        await self._limiter.clear(BY_PAIR, name, address)

    @asynccontextmanager
    async def _delay(self, name: str, address: str, within: bool) -> AsyncIterator[None]:
        if within:
            yield
            return
        pair = (name, address)
        queue = self._slowed.setdefault(pair, AttemptQueue(MAX_SLOWED))
        try:
            async with queue.turn():
                await asyncio.sleep(DELAY)
                yield
        finally:
            if not queue.size:
                self._slowed.pop(pair, None)


def network_of(address: str) -> str:
    """Return what counts as one address: the /64 network of IPv6, which one customer has."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(parsed.ipv4_mapped or ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)
