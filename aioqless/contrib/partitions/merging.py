"""Merging: one reply made of the replies of all partitions, as commands return them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from aioqless.client.job.summaries import FailureGroup

T = TypeVar("T")
H = TypeVar("H", bound=Hashable)
Record: TypeAlias = dict[str, Any]
Merge: TypeAlias = Callable[[Sequence[Any]], Any]

_SAME = ("name", "day")  # members that the records to be added have in common


def add(records: Sequence[Record]) -> Record:
    """Add records: their numbers, and lists of numbers; a flag is set if it is set in any."""
    first = records[0]
    return {
        name: value if name in _SAME else _add([record[name] for record in records])
        for name, value in first.items()
    }


def add_by_name(replies: Sequence[Sequence[Record]]) -> list[Record]:
    """Add records with the same name, in the order in which names come first."""
    named: dict[str, list[Record]] = {}
    for record in interleave(replies):
        named.setdefault(record["name"], []).append(record)
    return [add(records) for records in named.values()]


def combine_archive_states(replies: Sequence[Record]) -> Record:
    """Combine the states of the streams of ended jobs: the oldest entry, the slowest reader."""
    filled = [reply for reply in replies if reply.get("length")] or replies[:1]
    behind = min(filled, key=_entry_number)
    counters = ("bound", "length", "added")
    return behind | {name: sum(reply[name] for reply in replies) for name in counters}


def add_counters(replies: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Add counters by name."""
    return {
        name: sum(reply.get(name, 0) for reply in replies)
        for name in dict.fromkeys(itertools.chain(*replies))
    }


def add_in_order(replies: Sequence[Sequence[Record]]) -> list[Record]:
    """Add the first record of each reply, the second, ..."""
    return [add(records) for records in zip(*replies, strict=True)]


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
        "histogram": _add([part["histogram"] for part in parts]),
        "milliseconds": _add([part["milliseconds"] for part in parts]),
    }


def combine_stats(replies: Sequence[Record]) -> Record:
    """Combine the statistics of a day."""
    durations = ("wait", "run")
    counters = [
        {name: value for name, value in reply.items() if name not in durations} for reply in replies
    ]
    return add(counters) | {
        name: combine_durations([reply[name] for reply in replies]) for name in durations
    }


def combine_failures(replies: Sequence[Sequence[Record]]) -> list[Record]:
    """Combine the summaries of each failure group."""
    return [_combine_group(records) for records in zip(*replies, strict=True)]


def combine_workers(replies: Sequence[Sequence[Record]]) -> list[Record]:
    """Combine what partitions know of each worker, the one seen last first."""
    named: dict[str, list[Record]] = {}
    for record in itertools.chain(*replies):
        named.setdefault(record["name"], []).append(record)
    workers = [
        {
            "name": name,
            "jobs": sum(record["jobs"] for record in records),
            "stalled": sum(record["stalled"] for record in records),
            "seen": max(record["seen"] for record in records),
            "queues": next((each["queues"] for each in records if each["queues"]), None),
        }
        for name, records in named.items()
    ]
    return sorted(workers, key=lambda worker: -worker["seen"])


def combine_working(replies: Sequence[Sequence[Record]]) -> list[Record]:
    """Combine the summaries of each worker; the jobs whose locks expire first come first."""
    return [
        {
            "name": records[0]["name"],
            "seen": max(record["seen"] for record in records),
            "jobs": sum(record["jobs"] for record in records),
            "stalled": sum(record["stalled"] for record in records),
            "doing": sorted(
                (job for record in records for job in record["doing"]),
                key=lambda job: job["expires"],
            ),
        }
        for records in zip(*replies, strict=True)
    ]


def concatenate(replies: Sequence[Mapping[str, Sequence[Any]]]) -> dict[str, list[Any]]:
    """Concatenate lists by name."""
    return {name: [item for reply in replies for item in reply[name]] for name in replies[0]}


def interleave(replies: Sequence[Sequence[T]]) -> list[T]:
    """Return the first item of each reply, then the second of each, ..."""
    longest = max(map(len, replies), default=0)
    return [items[rank] for rank in range(longest) for items in replies if rank < len(items)]


def unite(replies: Sequence[Sequence[H]]) -> list[H]:
    """Interleave, with each item once."""
    return list(dict.fromkeys(interleave(replies)))


def sort_by_due_time(replies: Sequence[Sequence[Record]]) -> list[Record]:
    """Return recurring jobs by when they are due; those that aren't come last."""
    return sorted(
        interleave(replies), key=lambda job: math.inf if job["next"] is None else job["next"]
    )


def _sort_by_failure(replies: Sequence[Sequence[Record]]) -> list[Record]:
    return sorted(interleave(replies), key=lambda job: -(job["failure"] or {}).get("when", 0))


def _add(values: Sequence[Any]) -> Any:
    first = values[0]
    if isinstance(first, bool):
        return any(values)
    if isinstance(first, list):
        return [sum(column) for column in zip(*values, strict=True)]
    return sum(values)


def _combine_group(records: Sequence[Record]) -> Record:
    groups = [FailureGroup.from_record(record) for record in records]
    times = sorted({when for group in groups for _, when in group.marks}, reverse=True)
    return {
        "group": records[0]["group"],
        "total": sum(record["total"] for record in records),
        "latest": max(
            (record["latest"] for record in records), key=lambda job: job.get("failed", 0)
        ),
        "marks": [
            (max(1, round(sum(group.since(when) for group in groups))), when) for when in times
        ],
    }


def _entry_number(state: Record) -> tuple[int, ...]:
    """Return the id of a stream's first unread entry, or of an older one, as numbers."""
    first = state.get("read") or state.get("first") or "0-0"
    return tuple(int(part) for part in first.split("-"))


def _nothing(_: Sequence[None]) -> None:
    return None


def _longest(replies: Sequence[Sequence[float]]) -> list[float]:
    return [max(lags) for lags in zip(*replies, strict=True)]


def _most_delayed(replies: Sequence[Sequence[Record]]) -> list[Record]:
    return [
        max(delays, key=lambda delay: (delay["lag"], delay["declined"]))
        for delays in zip(*replies, strict=True)
    ]


def add_tenants(replies: Sequence[Sequence[Record]]) -> list[Record]:
    """Add the jobs of each tenant; its lag is the longest."""
    merged: dict[tuple[str, float], Record] = {}
    for record in interleave(replies):
        known = merged.setdefault((record["key"], record["priority"]), record)
        if known is not record:
            known["waiting"] += record["waiting"]
            known["running"] += record["running"]
            known["lag"] = max(known["lag"], record["lag"])
    return list(merged.values())


# Of commands that all partitions carry out.
SUMS: dict[str, Merge] = {
    "archive_state": combine_archive_states,
    "days": add_in_order,
    "delays": _most_delayed,
    "failed": add_counters,
    "failures": combine_failures,
    "lag": _longest,
    "length": sum,
    "queues": add,
    "stats": combine_stats,
    "track_list": concatenate,
    "workers": combine_workers,
    "working": combine_working,
    **dict.fromkeys(("pause", "unpause", "forget", "register", "deregister"), _nothing),
}

# Of commands that return a page: how the first items of all partitions are ordered.
PAGES: dict[str, Merge] = {
    "failed": _sort_by_failure,
    "group": interleave,
    "jobs": interleave,
    "peek": interleave,
    "queue_names": unite,
    "queues": add_by_name,
    "recurring": sort_by_due_time,
    "tag_get": interleave,
    "tag_top": unite,
    "tenants": add_tenants,
}
