"""Shares: the limits of a queue, divided among the partitions.

Each partition has an equal share of `<queue>-max-concurrency`, `<queue>-rate-limit` and
`<queue>-max-length`, so that together they never exceed the limit. A limit that must hold over few
jobs belongs to a `Limit`: the jobs of its key are in one partition.
"""

from __future__ import annotations

import re
from typing import Any

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
            f"{value}): set it to {better}, or give the jobs a Limit: those of its key are in one "
            "partition"
        )
    return f"{number // count}{period}"


def total_of(option: str, share: Any, count: int) -> Any:
    """Return the value of an option of which a partition has this share."""
    limit = _LIMIT.fullmatch(share) if isinstance(share, str) else None
    if limit is None or not _DIVIDED.fullmatch(option):
        return share
    return f"{int(limit[1]) * count}{limit[3] or ''}"
