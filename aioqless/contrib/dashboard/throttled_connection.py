"""A connection that takes at most a fixed share of Redis' time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from aioqless.client import CommandConnection, RedisCommand

SHARE = 0.2  # of Redis' time, at most
# A script begins with five words: EVALSHA, its hash, one key, and the time. It takes about three
# commands of Redis for each word more, such as a jid.
USUAL_WORDS, PER_WORD = 5, 3
MAX_PAUSE = 0.25  # seconds between two calls: a slow network must not stop live updates


class ThrottledConnection:
    """Sends one call at a time over another connection.

    Each call is followed by a pause in proportion to its duration. Callers are served in order.
    `count` is called with about how many commands of Redis each takes, before it is sent.
    """

    def __init__(
        self,
        connection: CommandConnection,
        count: Callable[[int], object],
        *,
        share: float = SHARE,
    ) -> None:
        self._connection = connection
        self._count = count
        self._pause = (1 - share) / share
        self._turn = asyncio.Lock()
        self._next_call = 0.0

    async def execute(self, *command: str | bytes | int | float) -> Any:
        """Send one command and return its reply."""
        (reply,) = await self.execute_many([command])
        return reply

    async def execute_many(
        self, commands: list[RedisCommand], *, raise_errors: bool = True
    ) -> list[Any]:
        """Send commands and return their replies."""
        loop = asyncio.get_running_loop()
        async with self._turn:
            await asyncio.sleep(max(0.0, self._next_call - loop.time()))
            began = loop.time()
            self._count(sum(map(_estimate, commands)))
            try:
                return await self._connection.execute_many(commands, raise_errors=raise_errors)
            finally:
                ended = loop.time()
                self._next_call = ended + min(MAX_PAUSE, self._pause * (ended - began))

    async def aclose(self) -> None:
        """Do nothing: the other connection has an owner."""


def _estimate(command: RedisCommand) -> int:
    return PER_WORD * max(1, len(command) - USUAL_WORDS)
