"""Arrow columns: times in microseconds, lists and maps taken apart, and rows by group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

DAY: Final = 86_400  # seconds
MICROS: Final = 1_000_000

Integers = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.float64]]


def array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column as one array."""
    if isinstance(column, pa.ChunkedArray):
        return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return column


def micros(times: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return timestamps as microseconds since the epoch."""
    return array(times).cast(pa.timestamp("us", "UTC")).cast(pa.int64())


def day(times: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return the UTC day of each timestamp."""
    return dates(pc.divide(micros(times), DAY * MICROS))


def dates(days: pa.Array | Integers) -> pa.Array:
    """Return days since the epoch as dates."""
    return pc.cast(pa.array(days), pa.int32()).cast(pa.date32())


def day_numbers(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return dates as days since the epoch."""
    return array(column).cast(pa.int32()).cast(pa.int64())


def seconds_between(start: pa.ChunkedArray | pa.Array, end: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return seconds from one timestamp to another, at least 0: clocks may be set back."""
    span = pc.subtract(micros(end), micros(start))
    return pc.divide(pc.cast(pc.max_element_wise(span, 0, skip_nulls=False), pa.float64()), 1e6)


def numbers(column: pa.ChunkedArray | pa.Array, default: float = 0) -> Any:
    """Return a numeric column as NumPy values, nulls as `default`."""
    values = array(column)
    return pc.fill_null(values, pa.scalar(default, values.type)).to_numpy(zero_copy_only=False)


def texts(values: Iterable[str | None]) -> pa.Array:
    """Return an array of strings."""
    return pa.array(values, pa.string())


def constant(value: str | int | None, length: int, kind: pa.DataType | None = None) -> pa.Array:
    """Return a column with one value in every row."""
    scalar = pa.scalar(value, kind or (pa.string() if not isinstance(value, int) else pa.int64()))
    return pa.repeat(scalar, length)


def elements(column: pa.ChunkedArray | pa.Array) -> tuple[Integers, pa.Array]:
    """Return the elements of a list column, each with the index of its row."""
    lists = array(column)
    return (
        pc.list_parent_indices(lists).cast(pa.int64()).to_numpy(),
        pc.list_flatten(lists),
    )


def entries(column: pa.ChunkedArray | pa.Array) -> tuple[Integers, pa.Array, pa.Array]:
    """Return the keys and values of a map column, each with the index of its row."""
    maps = array(column)
    pairs = maps.cast(
        pa.list_(pa.struct([("key", maps.type.key_type), ("value", maps.type.item_type)]))
    )
    rows, flat = elements(pairs)
    return rows, pc.struct_field(flat, "key"), pc.struct_field(flat, "value")


def lists(rows: Integers, values: pa.Array, length: int) -> pa.Array:
    """Return a list column of elements that are sorted by the index of their row."""
    return pa.ListArray.from_arrays(
        pa.array(_offsets(rows, length), pa.int32()),
        values,
        type=pa.list_(pa.field("element", values.type)),
    )


def maps(rows: Integers, keys: pa.Array, values: pa.Array, length: int) -> pa.Array:
    """Return a map column of entries that are sorted by the index of their row."""
    return pa.MapArray.from_arrays(pa.array(_offsets(rows, length), pa.int32()), keys, values)


def _offsets(rows: Integers, length: int) -> Integers:
    return np.concatenate(
        [np.zeros(1, np.int64), np.cumsum(np.bincount(rows, minlength=length), dtype=np.int64)]
    )


class Groups:
    """The rows of a table by the values of some columns, nulls being equal.

    Attributes:
        of: The number of its group for each row.
        keys: The values of each group; the groups are in the order of their first rows.
    """

    def __init__(self, table: pa.Table, names: Sequence[str]) -> None:
        codes = np.zeros(table.num_rows, np.int64)
        kinds = 1
        for name in names:
            encoded = array(table[name]).dictionary_encode(null_encoding="encode")
            codes = codes * len(encoded.dictionary) + encoded.indices.to_numpy()
            kinds *= len(encoded.dictionary)
            if kinds > 1 << 31:
                known, codes = np.unique(codes, return_inverse=True)
                kinds = len(known)
        _, first, sorted_ids = np.unique(codes, return_index=True, return_inverse=True)
        order = np.argsort(first, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        self.of: Integers = place[sorted_ids].astype(np.int64, copy=False)
        self.keys: pa.Table = table.select(list(names)).take(pa.array(first[order]))
        self._sorted: tuple[Integers, Integers] | None = None

    def __len__(self) -> int:
        return int(self.keys.num_rows)

    def sum(self, values: Any) -> Any:
        """Return the sum of each group, exact for integers."""
        total = np.zeros((len(self), *np.shape(values)[1:]), np.asarray(values).dtype)
        np.add.at(total, self.of, values)
        return total

    def least(self, values: Any) -> Any:
        """Return the smallest value of each group."""
        order, starts = self.order()
        return np.minimum.reduceat(values[order], starts) if len(order) else values

    def most(self, values: Any) -> Any:
        """Return the largest value of each group."""
        order, starts = self.order()
        return np.maximum.reduceat(values[order], starts) if len(order) else values

    def order(self) -> tuple[Integers, Integers]:
        """Return the rows sorted by group, and where each group starts in them."""
        if self._sorted is None:
            order = np.argsort(self.of, kind="stable")
            starts = np.searchsorted(self.of[order], np.arange(len(self)))
            self._sorted = order, starts
        return self._sorted


def replace(table: pa.Table, **columns: pa.Array | pa.ChunkedArray) -> pa.Table:
    """Return a table with some columns added or replaced."""
    for name, values in columns.items():
        at = table.schema.get_field_index(name)
        table = table.append_column(name, values) if at < 0 else table.set_column(at, name, values)
    return table


def mapped(column: pa.ChunkedArray | pa.Array, function: Callable[[Any], Any]) -> list[Any]:
    """Return the value of a function for each distinct value, in the order of its codes."""
    return [function(value) for value in array(column).to_pylist()]
