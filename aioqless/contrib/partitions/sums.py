"""Sums: one reply made of the replies of all partitions, as commands return them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any, TypeAlias

from aioqless.client.job.summaries import FailureGroup

Record: TypeAlias = dict[str, Any]
Merge: TypeAlias = Callable[[Sequence[Any]], Any]


def add(records: Sequence[Record]) -> Record:
    """Merge records by member: numbers are added, lists joined, and a flag is set if any is."""
    return {
        name: _OF_MEMBERS.get(name, _add)([record[name] for record in records])
        for name in records[0]
    }


def add_by_name(replies: Iterable[Iterable[Record]]) -> list[Record]:
    """Add the records that have one name, by when each name comes first."""
    groups: dict[str, list[Record]] = {}
    for record in chain(*replies):
        groups.setdefault(record["name"], []).append(record)
    return list(map(add, groups.values()))


def in_order(merge: Merge) -> Merge:
    """Return what merges the first items of all replies, the second items, ..."""
    return lambda replies: [merge(items) for items in zip(*replies, strict=True)]


def combine_durations(parts: Sequence[Record]) -> Record:
    """Combine counts, means and variances exactly, as if all values had been in one sample."""
    count = sum(part["count"] for part in parts)
    mean = sum(part["count"] * part["mean"] for part in parts) / count if count else 0
    squares = sum(
        max(0, part["count"] - 1) * part["variance"] + part["count"] * (part["mean"] - mean) ** 2
        for part in parts
    )
    variance = squares / (count - 1) if count > 1 else 0
    return {
        "count": count,
        "total": sum(part["total"] for part in parts),
        "mean": mean,
        "std": math.sqrt(variance),
        "variance": variance,
        "histogram": in_order(sum)([part["histogram"] for part in parts]),
    }


def _add(values: Sequence[Any]) -> Any:
    match values[0]:
        case bool():
            return any(values)
        case list():
            return list(chain(*values))
    return sum(values)


def _combine_group(records: Sequence[Record]) -> Record:
    groups = [FailureGroup.from_record(record) for record in records]
    times = sorted({when for group in groups for _, when in group.marks}, reverse=True)
    marks = [(max(1, round(sum(group.since(when) for group in groups))), when) for when in times]
    return add(records) | {"marks": marks}


def _combine_archive_states(replies: Sequence[Record]) -> Record:
    """Combine the states of the streams of ended jobs: the oldest entry, the slowest reader."""

    def position(state: Record) -> tuple[int, ...]:
        first = state.get("read") or state.get("first") or "0-0"
        return tuple(map(int, first.split("-")))

    filled = [reply for reply in replies if reply.get("length")] or replies[:1]
    counters = ("bound", "length", "added")
    return min(filled, key=position) | {
        name: sum(reply[name] for reply in replies) for name in counters
    }


# Members of records that are neither added nor joined.
_OF_MEMBERS: dict[str, Merge] = {
    **dict.fromkeys(("name", "day", "key", "priority", "group"), itemgetter(0)),
    **dict.fromkeys(("seen", "lag"), max),
    **dict.fromkeys(("wait", "run"), combine_durations),
    "doing": lambda lists: sorted(chain(*lists), key=lambda job: job["expires"]),
    "latest": partial(max, key=lambda job: job.get("failed", 0)),
    "queues": lambda lists: next(filter(None, lists), None),
    "alive": lambda found: max((each for each in found if each is not None), default=None),
}

combine_failures = in_order(_combine_group)

# Of commands that all partitions carry out.
SUMS: dict[str, Merge] = {
    "archive_state": _combine_archive_states,
    "days": in_order(add),
    "delays": in_order(partial(max, key=lambda delay: (delay["lag"], delay["declined"]))),
    "failed": lambda replies: dict(sum(map(Counter, replies), Counter())),
    "failures": combine_failures,
    "lag": in_order(max),
    "length": sum,
    "queues": add,
    "stats": add,
    "workers": lambda replies: sorted(add_by_name(replies), key=lambda worker: -worker["seen"]),
    "working": in_order(add),
    **dict.fromkeys(("pause", "unpause", "forget", "register", "deregister"), lambda _: None),
}

# Of the words of `metrics`, whose records its reader adds up.
METRICS: dict[str, Merge] = {
    "series": lambda replies: list(dict.fromkeys(chain(*replies))),
    "periods": in_order(lambda records: list(chain(*records))),
    "facts": in_order(lambda texts: next(filter(None, texts), "")),
    "history": "\n".join,
    "marks": lambda replies: list(chain(*replies)),
}
