"""A connection that sends no more than so many commands a second, whoever asks."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from aioqless.connection import Command, Sends

PER_SECOND = 4  # 5 are promised: what is sent in time may come late, with what follows at its heels


class Paced:
    """Sends over another connection, and lets callers wait, first come first served: in no second are there more commands than
    `per_second`."""

    def __init__(self, connection: Sends, per_second: int = PER_SECOND) -> None:
        self._inner = connection
        self._sent: deque[float] = deque(maxlen=per_second)
        self._turn = asyncio.Lock()

    async def execute(self, *command: str | bytes | int | float) -> Any:
        await self._may_send()
        return await self._inner.execute(*command)

    async def execute_many(self, commands: list[Command], *, raise_errors: bool = True) -> list[Any]:
        for _ in commands:
            await self._may_send()
        return await self._inner.execute_many(commands, raise_errors=raise_errors)

    async def aclose(self) -> None:
        """Nothing: the connection is another's."""

    async def _may_send(self) -> None:
        loop = asyncio.get_running_loop()
        async with self._turn:
            if len(self._sent) == self._sent.maxlen:
                await asyncio.sleep(self._sent[0] + 1.0 - loop.time())
            self._sent.append(loop.time())
