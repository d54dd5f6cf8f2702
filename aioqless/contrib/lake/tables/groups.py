"""The groupings of gold tables: a row counts in every grouping it is in, for each of its tags."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from aioqless.contrib.lake.tables.columns import array, constant, elements, replace

PARTS: Final = ("queue", "klass", "tag", "worker")
GROUPINGS: Final = (
    "",
    "queue",
    "klass",
    "tag",
    "queue,klass",
    "queue,tag",
    "klass,tag",
    "queue,klass,tag",
    "worker",
    "queue,worker",
)
LIST: Final = pa.list_(pa.string())
KEYS: Final = ("namespace", "date", "grouping", *PARTS)


def grouped(rows: pa.Table) -> Iterator[pa.Table]:
    """Yield, for every grouping, the rows that are in it.

    The column `grouping` names it, and the parts that it leaves out are null. A job without tags is
    in no grouping by tag, and what no worker ran is in none by worker.
    """
    parents, tags = elements(rows["tags"])
    by_tag = replace(rows.take(pa.array(parents)), tag=tags).drop_columns(["tags"])
    plain = rows.drop_columns(["tags"])
    worked = plain.filter(pc.is_valid(array(plain["worker"])))
    for grouping in GROUPINGS:
        parts = grouping.split(",")
        chosen = by_tag if "tag" in parts else worked if "worker" in parts else plain
        left_out = {
            part: constant(None, chosen.num_rows, pa.string())
            for part in PARTS
            if part not in parts
        }
        yield replace(chosen, grouping=constant(grouping, chosen.num_rows), **left_out)


def tag_sets(tags: pa.ChunkedArray | pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return a code for the tags of each row, and the tags of each code, without duplicates."""
    encoded = _joined(tags).dictionary_encode()
    sets = [sorted(set(text.split("\0")[1:])) for text in encoded.dictionary.to_pylist()]
    return encoded.indices, pa.array(sets, LIST)


def _joined(tags: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return each list as a string: its elements, each after a NUL."""
    lists = pc.fill_null(array(tags).cast(LIST), pa.scalar([], LIST))
    text = pc.binary_join(lists, "\0")
    return pc.if_else(
        pc.equal(pc.list_value_length(lists), 0),
        "",
        pc.binary_join_element_wise(pa.scalar(""), text, "\0"),
    )


def known(by: str) -> str:
    """The grouping that text such as `klass,queue` names. Raises ValueError if there is none."""
    parts = [part.strip() for part in by.split(",") if part.strip()]
    if unknown := [part for part in parts if part not in PARTS]:
        raise ValueError(f"{unknown[0]!r} is nothing to group by; there are {', '.join(PARTS)}")
    name = ",".join(part for part in PARTS if part in parts).replace("klass,worker", "worker,klass")
    if name not in GROUPINGS:
        raise ValueError(
            f"by {name} nothing is kept; there are {' '.join(filter(None, GROUPINGS))}"
        )
    return name
