"""How far the events of a namespace are in the lake."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from datetime import date, timedelta
from typing import Self

from aioqless.contrib.lake.open_table import OpenTable


@dataclass(frozen=True)
class Position:
    """The last archived entry of a namespace's stream, as the commits of a table record it.

    Attributes:
        ms: The first half of the entry's id.
        seq: The second half.
        ordinal: The entry's number in the lake. Numbers rise from 1; a gap is a loss.
        lost: The number of entries ever that were deleted from Redis before they were archived, or
            are missing from the lake.
        forgotten: The number of entries that are in the lake although Redis, restored from an
            older state, no longer counts them.
    """

    ms: int = 0
    seq: int = 0
    ordinal: int = 0
    lost: int = 0
    forgotten: int = 0

    @classmethod
    def of(cls, table: OpenTable, namespace: str) -> Self:
        """Return the position that a table's commits record; the start of the stream if none do."""
        names = transaction_names(namespace)
        return cls(**{name: table.transaction(names[name]) or 0 for name in names})

    @property
    def id(self) -> str:
        """The id of the entry in the stream."""
        return f"{self.ms}-{self.seq}"

    def transactions(self, namespace: str) -> dict[str, int]:
        """Return this position as the transactions of a commit."""
        return {name: getattr(self, key) for key, name in transaction_names(namespace).items()}


def transaction_names(namespace: str) -> dict[str, str]:
    """Return the name of the transaction that records each part of a position."""
    return {each.name: f"archive:{namespace}:{each.name}" for each in fields(Position)}


def refreshed_name(namespace: str) -> str:
    """Return the transaction name under which a table records its last ordinal."""
    return f"refresh:{namespace}"


def pruned_name(namespace: str) -> str:
    """Return the transaction name under which a table records the first day that is left."""
    return f"prune:{namespace}"


def first_day(table: OpenTable, namespace: str) -> date | None:
    """Return the day before which a table has been pruned, if it has been."""
    days = table.transaction(pruned_name(namespace))
    return None if days is None else date(1970, 1, 1) + timedelta(days=days)


def erased_name(namespace: str) -> str:
    """Return the transaction name under which a table records how many entries were erased."""
    return f"erase:{namespace}"


def pruned_rows_name(namespace: str) -> str:
    """Return the transaction name under which a table records how many entries were pruned."""
    return f"prune:{namespace}:rows"


def pruned_ordinal_name(namespace: str) -> str:
    """Return the transaction name under which a table records up to which entry it was pruned."""
    return f"prune:{namespace}:ordinal"


def count_missing(events: OpenTable, quarantine: OpenTable, namespace: str) -> int:
    """Return how many archived entries are in neither table, although nothing removed them.

    Pruned days that are there again, as after an earlier version was restored, don't count.
    """
    position = Position.of(events, namespace)
    missing = position.ordinal - position.lost
    for table in (events, quarantine):
        for name in (erased_name, pruned_rows_name):
            missing -= table.transaction(name(namespace)) or 0
        first = first_day(table, namespace) or date.min
        pruned = table.transaction(pruned_ordinal_name(namespace)) or 0
        files = table.files(namespace)
        # The quarantine has the rejected entries of a batch before the events.
        read = {
            each.partition
            for each in files
            if each.date < first or each.greatest.get("ordinal", math.inf) > position.ordinal
        }
        missing -= sum(each.rows for each in files if each.partition not in read)
        where = f"ordinal <= {position.ordinal} AND (date >= '{first}' OR ordinal > {pruned})"
        missing -= table.read(read, ["ordinal"], where).num_rows
    return missing
