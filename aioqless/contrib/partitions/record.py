"""The number of partitions, as Redis has it: recorded on first use, compared on each later one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from aioqless.client import REDIS_UNAVAILABLE
from aioqless.errors import AioqlessError
from aioqless.store import Keys, ScriptStore


class WrongPartitions(AioqlessError):
    """The namespace has another number of partitions than the client was given."""


async def compare_count(namespace: str, stores: Sequence[ScriptStore]) -> bool:
    """Compare the number of partitions with that in Redis.

    Each partition has a record of it, so a node that is down keeps no client from working with the
    others.

    Args:
        namespace: Name of the whole, for errors.
        stores: The stores of the partitions.

    Returns:
        Whether it is recorded already.

    Raises:
        WrongPartitions: Redis has another number.
        redis.exceptions.ConnectionError: The first partition can't be reached, and no other has a
            record.
    """
    replies = await asyncio.gather(
        *(store.connection.execute("GET", count_key(store)) for store in stores),
        return_exceptions=True,
    )
    for reply in replies:
        if isinstance(reply, BaseException) and not isinstance(reply, REDIS_UNAVAILABLE):
            raise reply
        if isinstance(reply, bytes) and int(reply) != len(stores):
            raise wrong_number(namespace, int(reply), len(stores))
    is_recorded = any(isinstance(reply, bytes) for reply in replies)
    if isinstance(replies[0], BaseException) and not is_recorded:
        raise replies[0]
    if is_recorded:
        missing = [store for store, reply in zip(stores, replies, strict=True) if reply is None]
        await _record(missing, len(stores))
    return is_recorded


async def record_count(namespace: str, stores: Sequence[ScriptStore]) -> None:
    """Record the number of partitions: in the first one, which all numbers share, then in all.

    Raises:
        WrongPartitions: Another client was first, with another number.
    """
    first = stores[0]
    await first.connection.execute("SET", count_key(first), len(stores), "NX")
    recorded = int(await first.connection.execute("GET", count_key(first)))
    if recorded != len(stores):
        raise wrong_number(namespace, recorded, len(stores))
    await _record(stores[1:], len(stores))


def wrong_number(namespace: str, recorded: int, given: int) -> WrongPartitions:
    """Return the error for another number of partitions than Redis has."""
    return WrongPartitions(
        f"namespace {namespace!r} has {_in_words(recorded)} in Redis, not {given}: open it with "
        f"partitions={recorded}. To change the number, drain it into a new namespace"
    )


async def _record(stores: Sequence[ScriptStore], count: int) -> None:
    await asyncio.gather(
        *(store.connection.execute("SET", count_key(store), count, "NX") for store in stores),
        return_exceptions=True,  # the next client records it where that failed
    )


def count_key(store: ScriptStore) -> bytes:
    """Return the key of a partition's record."""
    return Keys(store.namespace)("partitions")


def _in_words(count: int) -> str:
    return "no partitions" if count == 1 else f"{count} partitions"
