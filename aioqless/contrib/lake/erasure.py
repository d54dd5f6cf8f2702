"""Erases jobs and tags from rows, of any table by the names of its columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_TAGS: Final = ("tag", "tags")  # columns that name tags; the others name jobs
_OF_ROW: Final = ("jid", "tag")  # whose rows are deleted
_LISTS: Final = ("depends", "samples", "tags")  # that lose items
COLUMNS: Final = (*_OF_ROW, *_LISTS, "spawned_from", "raw")


@dataclass(frozen=True)
class Erasure:
    """The jobs and tags to erase."""

    jids: frozenset[str]
    tags: frozenset[str]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows without the jobs and tags."""
        return map(self.erase_from, batches)

    def erase_from(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows without the jobs and tags; the same object if they have none."""
        for number, name in enumerate(rows.schema.names):
            if name not in COLUMNS:
                continue
            column = rows[name]
            erased = pa.array(self.tags if name in _TAGS else self.jids, pa.string())
            if name in _LISTS:
                kept = _filter_items(column, erased)
                if kept is not column:
                    rows = rows.set_column(number, name, kept)
                continue
            is_erased = (
                pa.array(map(self._has_entry, column.to_pylist()), pa.bool_())
                if name == "raw"
                else pc.is_in(column, erased)
            )
            if not pc.any(is_erased).as_py():
                continue
            if name == "spawned_from":
                kept = pc.if_else(is_erased, pa.scalar(None, column.type), column)
                rows = rows.set_column(number, name, kept)
            else:
                rows = rows.filter(pc.invert(is_erased))
        return rows

    def _has_entry(self, raw: str | None) -> bool:
        """Whether a rejected entry, which is JSON, is of one of the jobs or has one of the tags."""
        with suppress(ValueError, TypeError, AttributeError):  # it may have anything
            entry = json.loads(raw or "{}")
            if entry.get("jid") in self.jids:
                return True
            tags = json.loads(entry.get("tags", "[]"))
            return isinstance(tags, list) and not self.tags.isdisjoint(map(str, tags))
        return False


def _filter_items(lists: pa.ListArray, erased: pa.Array) -> pa.ListArray:
    """Return lists without some items, named by themselves or by their jid."""
    items = lists.flatten()
    names = items.field("jid") if pa.types.is_struct(items.type) else items
    is_erased = pc.is_in(names, erased)
    if not pc.any(is_erased).as_py():
        return lists
    is_kept = pc.invert(is_erased)
    of = pc.list_parent_indices(lists).filter(is_kept).to_numpy()
    ends = np.bincount(of, minlength=len(lists)).cumsum()
    offsets = pa.array(np.concatenate(([0], ends)), pa.int32())
    kept = items.filter(is_kept)
    return pa.ListArray.from_arrays(offsets, kept, lists.type, mask=lists.is_null())
