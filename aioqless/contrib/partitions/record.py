"""The number of partitions, as Redis has it: recorded on first use, compared on each later one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
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


async def compare_count(namespace: str, whole: ScriptStore, stores: Sequence[ScriptStore]) -> None:
    """Compare the number of partitions with that in Redis; record it where there is no record.

    Each partition has a record of it, so a node that is down keeps no client from working with the
    others. Without any, the record of the whole namespace decides: the first client wrote it.

    Args:
        namespace: Name of the whole, for errors.
        whole: A store of the namespace without partitions.
        stores: The stores of the partitions.

    Raises:
        WrongPartitions: Redis has another number.
    """
    key, count = count_key(whole.namespace), len(stores)
    replies = await _ask(stores, "GET") if count > 1 else []
    for reply in replies:
        if isinstance(reply, BaseException) and not isinstance(reply, REDIS_UNAVAILABLE):
            raise reply
        if isinstance(reply, bytes) and int(reply) != count:
            raise WrongPartitions.of(namespace, int(reply), count)
    if not any(isinstance(reply, bytes) for reply in replies):
        if replies and isinstance(replies[0], BaseException):
            raise replies[0]
        recorded = int(await whole.connection.execute("GET", key) or 0)
        if count > 1 and not recorded:
            if await whole.connection.execute("EXISTS", Keys(whole.namespace)("queues")):
                raise WrongPartitions.of(namespace, 1, count)
            await whole.connection.execute("SET", key, count, "NX")
            recorded = int(await whole.connection.execute("GET", key))
        if recorded not in (0, count):
            raise WrongPartitions.of(namespace, recorded, count)
    missing = [store for store, reply in zip(stores, replies, strict=False) if reply is None]
    await _ask(missing, "SET", count, "NX")  # the next client records it where that fails


async def _ask(stores: Sequence[ScriptStore], name: str, *words: int | str) -> list[object]:
    return await asyncio.gather(
        *(each.connection.execute(name, count_key(each.namespace), *words) for each in stores),
        return_exceptions=True,
    )
