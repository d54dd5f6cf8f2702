"""Writes that wait for replicas, or for the disk."""

from __future__ import annotations

from dataclasses import dataclass

from redis import exceptions

from aioqless import validation
from aioqless.errors import AioqlessError, NotDurable
from aioqless.redis.batcher import Batcher
from aioqless.redis.connection import CommandConnection, RedisCommand, Reply, Word
from aioqless.validation import Duration

MAX_BATCH = 200


@dataclass(frozen=True, kw_only=True)
class Durability:
    """What must have a write before its caller is answered.

    Attributes:
        replicas: Number of replicas, besides the server itself.
        disk: It must be on the disk of each of these and of the server, which needs an append-only
            file (WAITAOF: Redis 7.2, Valkey 8).
        timeout: Maximum number of seconds to wait.

    Raises:
        ValueError: An attribute has a wrong value.
        TypeError: An attribute has a wrong type.
    """

    replicas: int = 1
    disk: bool = False
    timeout: Duration = Duration(1.0, least=0.001)

    def __post_init__(self) -> None:
        validation.check_integer("replicas", self.replicas, least=0)
        validation.check_bool("disk", self.disk)
        if not self.replicas and not self.disk:
            raise ValueError(
                "durability with 0 replicas and no disk waits for nothing: "
                "say replicas=1, disk=True, or leave it out"
            )

    @property
    def wait_command(self) -> RedisCommand:
        """The command that waits for the writes before it on their connection."""
        milliseconds = max(1, round(self.timeout * 1000))
        if self.disk:
            return ("WAITAOF", 1, self.replicas, milliseconds)
        return ("WAIT", self.replicas, milliseconds)

    def describe_missing(self, reply: Reply) -> str | None:
        """Say what the reply to `wait_command` lacks; None if nothing."""
        on_disk, replicas = reply if self.disk else (1, reply)
        if on_disk and replicas >= self.replicas:
            return None
        what = [] if on_disk else ["the server's own disk doesn't have it"]
        if replicas < self.replicas:
            what.append(
                f"{replicas} of {self.replicas} replicas have it{' on disk' if self.disk else ''}"
            )
        return f"{' and '.join(what)} after {self.timeout} s"


class DurableWrites:
    """Sends writes over a connection of their own, so that waiting doesn't block other calls.

    Writes that come while others are waited for are sent together after them, with one wait for
    all. The wait is on the connection of the write, so it means this write, also after a failover.
    """

    def __init__(self, connection: CommandConnection, durability: Durability) -> None:
        self.connection = connection
        self._durability = durability
        self._batcher: Batcher[RedisCommand, Reply] = Batcher(
            self._send, name="durable writes", max_items=MAX_BATCH
        )

    async def execute(self, *command: Word) -> Reply:
        """Send a write and return its reply when it is durable.

        Raises:
            NotDurable: It is done, but not durable yet.
            redis.exceptions.RedisError: The reply is an error, or there is none.
        """
        return await self._batcher.submit(command)

    async def aclose(self) -> None:
        """Close the connection; calls under way raise ConnectionError."""
        await self.connection.aclose()
        await self._batcher.finish()

    async def _send(self, batch: list[RedisCommand]) -> list[Reply]:
        *replies, waited = await self.connection.execute_many(
            [*batch, self._durability.wait_command], raise_errors=False
        )
        if isinstance(waited, exceptions.ResponseError) and self._durability.disk:
            waited = AioqlessError(
                f"durability with disk=True needs WAITAOF, which this server refuses: {waited}"
            )
        if isinstance(waited, Exception):
            return [reply if isinstance(reply, Exception) else waited for reply in replies]
        if missing := self._durability.describe_missing(waited):
            return [
                reply if isinstance(reply, Exception) else NotDurable(missing, reply)
                for reply in replies
            ]
        return replies
