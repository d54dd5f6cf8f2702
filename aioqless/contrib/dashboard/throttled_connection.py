"""A connection that takes at most a fixed share of Redis' time."""

from __future__ import annotations

import asyncio
from typing import Any

from aioqless.client import CommandConnection, RedisCommand

SHARE = 0.2  # of Redis' time, at most
MAX_PAUSE = 0.25  # seconds between two calls: a slow network must not stop live updates


class ThrottledConnection:
    """Sends one call at a time over another connection.

    Each call is followed by a pause in proportion to its duration. Callers are served in order.
    """

    def __init__(self, connection: CommandConnection, share: float = SHARE) -> None:
        self._connection = connection
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
            try:
                return await self._connection.execute_many(commands, raise_errors=raise_errors)
            finally:
                ended = loop.time()
                self._next_call = ended + min(MAX_PAUSE, self._pause * (ended - began))

    async def aclose(self) -> None:
        """Do nothing: the other connection has an owner."""
