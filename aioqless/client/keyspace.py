"""Direct access to the keys of a namespace, for tools that scan all of it."""

from __future__ import annotations

from typing import Any

from aioqless.redis.connection import Command
from aioqless.redis.encoding import decode_text
from aioqless.store import Keys, ScriptStore

__all__ = ["Keys", "Keyspace", "decode_text"]


class Keyspace:
    """Names the keys of a namespace, and reads them without a script."""

    def __init__(self, store: ScriptStore) -> None:
        self._store = store
        self.key = Keys(store.namespace)

    async def execute(self, *command: str | bytes | float) -> Any:
        """Send a Redis command and return its reply: bytes, int, None, or a list of these."""
        return await self._store.connection.execute(*command)

    async def execute_many(
        self, commands: list[Command], *, raise_errors: bool = True
    ) -> list[Any]:
        """Send commands in one write and return their replies, perhaps with errors among them."""
        return await self._store.connection.execute_many(commands, raise_errors=raise_errors)

    async def now(self) -> float:
        """Return the time by the clock of the scripts, in seconds since 1970."""
        return await self._store.now()
