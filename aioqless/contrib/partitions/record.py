"""The number of partitions, as Redis has it: recorded on first use, compared on each later one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Self

from aioqless.client import REDIS_UNAVAILABLE
from aioqless.errors import AioqlessError
from aioqless.store import Keys, ScriptStore


class WrongPartitions(AioqlessError):
    """The namespace has another number of partitions than the client was given."""

    @classmethod
    def of(cls, namespace: str, recorded: int, given: int) -> Self:
        """Return the error for another number than Redis has."""
        count = "no partitions" if recorded == 1 else f"{recorded} partitions"
        return cls(
            f"namespace {namespace!r} has {count} in Redis, not {given}: open it with "
            f"partitions={recorded}. To change the number, drain it into a new namespace"
        )


def count_key(namespace: str) -> bytes:
    """Return the key of the record of a partition."""
    return Keys(namespace)("partitions")


async def compare_count(
    namespace: str, stores: Sequence[ScriptStore], is_used_whole: Callable[[], Awaitable[object]]
) -> None:
    """Compare the number of partitions with that in Redis; record it where there is no record.

    Each partition has a record of it, so a node that is down keeps no client from working with the
    others. The first record is that of the first partition, which all numbers share.

    Args:
        namespace: Name of the whole, for errors.
        stores: The stores of the partitions.
        is_used_whole: Returns whether there are jobs without partitions.

    Raises:
        WrongPartitions: Redis has another number.
        redis.exceptions.ConnectionError: The first partition can't be reached, and no other has a
            record.
    """
    first, count = stores[0], len(stores)
    replies = await _ask(stores, "GET")
    for reply in replies:
        if isinstance(reply, BaseException) and not isinstance(reply, REDIS_UNAVAILABLE):
            raise reply
        if isinstance(reply, bytes) and int(reply) != count:
            raise WrongPartitions.of(namespace, int(reply), count)
    if not any(isinstance(reply, bytes) for reply in replies):
        if isinstance(replies[0], BaseException):
            raise replies[0]
        if await is_used_whole():
            raise WrongPartitions.of(namespace, 1, count)
        await first.connection.execute("SET", count_key(first.namespace), count, "NX")
        recorded = int(await first.connection.execute("GET", count_key(first.namespace)))
        if recorded != count:  # another client was first
            raise WrongPartitions.of(namespace, recorded, count)
    missing = [store for store, reply in zip(stores, replies, strict=True) if reply is None]
    await _ask(missing, "SET", count, "NX")  # the next client records it where that fails


async def _ask(stores: Sequence[ScriptStore], name: str, *words: int | str) -> list[object]:
    return await asyncio.gather(
        *(each.connection.execute(name, count_key(each.namespace), *words) for each in stores),
        return_exceptions=True,
    )
