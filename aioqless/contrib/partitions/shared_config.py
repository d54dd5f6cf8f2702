"""Shared configuration: every partition has the same, and differences are found and repaired.

The limits of a queue (`<queue>-max-concurrency`, `<queue>-rate-limit`, `<queue>-max-length`) are
divided: each partition has an equal share, so that together they never exceed the limit. A limit
that must hold over few jobs belongs to a `limit_key`: its jobs are in one partition.

The first partition is written first, so after a failure it tells what the others should have.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from aioqless.store import Store

Record: TypeAlias = dict[str, Any]

_DIVIDED = re.compile(r".+-(?:max-concurrency|max-length|rate-limit)")
_LIMIT = re.compile(r"(\d+)(\.0*)?(/.+)?")


def share_of(option: str, value: str, count: int) -> str:
    """Return the share of one of several partitions in the value of an option.

    Raises:
        ValueError: The value of a queue's limit is not a multiple of their number.
    """
    limit = _LIMIT.fullmatch(value)
    if limit is None or not _DIVIDED.fullmatch(option):
        return value
    number, period = int(limit[1]), limit[3] or ""
    if number % count:
        below = number - number % count
        better = f"{below} or {below + count}" if below else str(count)
        raise ValueError(
            f"{option} must be a multiple of {count}, since as many partitions share it (got "
            f"{value}): set it to {better}, or limit jobs by a limit_key, which are all in "
            "one partition"
        )
    return f"{number // count}{period}"


def total_of(option: str, share: Any, count: int) -> Any:
    """Return the value of an option of which a partition has this share."""
    limit = _LIMIT.fullmatch(share) if isinstance(share, str) else None
    if limit is None or not _DIVIDED.fullmatch(option):
        return share
    return f"{int(limit[1]) * count}{limit[3] or ''}"


async def find_differences(stores: Mapping[int, Store], *, resolve: bool) -> list[Record]:
    """Compare options and paused queues with those of the first partition; return findings."""
    first, found = stores[0], list[Record]()
    options: dict[str, Any] = await first.config_get()
    paused: dict[str, bool] = {}
    for number, store in stores.items():
        at = {"fixed": resolve, "partition": number}
        own = await store.config_get()
        for option in options.keys() | own.keys():
            if (value := options.get(option)) == own.get(option):
                continue
            found.append({"problem": "config-differs", **at, "option": option})
            if resolve and isinstance(value, str):
                await store.config_set(option=option, value=value)
            elif resolve:  # the first partition has the default
                await store.config_unset(option=option)
        for queue in await store.queues():
            name, is_paused = queue["name"], queue["paused"]
            if name not in paused:  # the first partition needn't have jobs of it
                paused[name] = (await first.queues(queue=name))["paused"]
            if is_paused != paused[name]:
                found.append({"problem": "pause-differs", **at, "queue": name})
                if resolve:
                    await (store.unpause if is_paused else store.pause)(queues=[name])
    return found
