"""A connection whose callers take at most a fixed share of Redis' time."""

from __future__ import annotations

import asyncio
from typing import Any

from aioqless.redis.connection import Command, Sends

SHARE = 0.2  # of Redis' time, at most
LONGEST_PAUSE = 0.25  # seconds between two calls, at most: a slow network doesn't stop the updates


class ThrottledConnection:
    """Sends one call at a time over another connection, each followed by a pause in proportion to
    the time that it took.

    Owns the turn of its callers, which is first come, first served, and the time of the next call.
    """

    def __init__(self, connection: Sends, share: float = SHARE) -> None:
        self._inner = connection
        self._pause = (1 - share) / share
        self._turn = asyncio.Lock()
        self._next = 0.0

    async def execute(self, *command: str | bytes | int | float) -> Any:
        (reply,) = await self.execute_many([command])
        return reply

    async def execute_many(
        self, commands: list[Command], *, raise_errors: bool = True
    ) -> list[Any]:
        loop = asyncio.get_running_loop()
        async with self._turn:
            await asyncio.sleep(max(0.0, self._next - loop.time()))
            began = loop.time()
            try:
                return await self._inner.execute_many(commands, raise_errors=raise_errors)
            finally:
                ended = loop.time()
                self._next = ended + min(LONGEST_PAUSE, self._pause * (ended - began))

    async def aclose(self) -> None:
        """Do nothing: the other connection has an owner."""
