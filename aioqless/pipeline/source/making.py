"""Rows as jobs: which column says what, and why a row can't be a job."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa

from aioqless import names
from aioqless.errors import InvalidData
from aioqless.pipeline.source.options import Options
from aioqless.puts import NewJob
from aioqless.sealing import Seal

OPTIONS = ("queue", "klass", "priority", "delay", "retries", "tags", "batch", "maxData", "dropNulls")
OF_PUT = ("queue", "klass", "jid", "data", "priority", "delay", "retries", "tags", "depends")
KINDS = {
    "queue": "a string", "klass": "a string", "jid": "a string", "priority": "a number", "delay": "a number", "retries": "a whole number",
    "tags": "an array of strings", "depends": "an array of strings",
}  # fmt: skip

Row = dict[str, Any]


@dataclass(frozen=True)
class Reject:
    """A row that is no job, as JSON, and why."""

    reason: str
    row: str


@dataclass(frozen=True)
class Recipe:
    """What a row lacks of a job, and what a job without a jid is named after.

    A column of these names is what it says: queue, klass, jid, data, priority, delay, retries, tags, depends. Without a column `data`,
    the other columns are the data, as an object. A text in `data` is JSON. `drop_nulls` leaves out what is null in it.
    """

    constant: Mapping[str, Any]
    batch: str = ""
    max_data: int = 1 << 20
    drop_nulls: bool = False

    @classmethod
    def of(cls, options: Options, schema: pa.Schema) -> Recipe:
        """Raises ValueError for a column of another kind, and for rows that nothing gives a queue or a klass."""
        for name in set(schema.names) & KINDS.keys():
            if not _fits(KINDS[name], schema.field(name).type):
                raise ValueError(f"the column {name!r} must be {KINDS[name]}, not {schema.field(name).type}")
        constant: dict[str, Any] = {
            "queue": options.text("queue"),
            "klass": options.text("klass"),
            "priority": options.number("priority", None),
            "delay": options.number("delay", None),
            "retries": options.whole("retries", None, least=0),
            "tags": None if (tags := options.text("tags")) is None else [tag.strip() for tag in tags.split(",")],
        }
        for name in ("queue", "klass"):
            if constant[name] is None and name not in schema.names:
                raise ValueError(f"there is no column {name!r} and no option: say .option({name!r}, …)")
            if constant[name] is not None:
                names.checked(name, constant[name])
        max_data = options.whole("maxData", 1 << 20) or 0
        given = {name: value for name, value in constant.items() if value is not None}
        return cls(given, options.text("batch") or "", max_data, options.truth("dropNulls"))

    def jobs(self, batch: pa.RecordBatch, seal: Seal | None) -> Iterator[tuple[str, dict[str, Any]] | Reject]:
        """Each row as its queue and what the put scripts take, or the reason why not."""
        for row in batch.to_pylist():
            try:
                yield self._job(row, seal)
            except (ValueError, TypeError, InvalidData) as why:
                yield Reject(str(why), shown(row))

    def _job(self, row: Row, seal: Seal | None) -> tuple[str, dict[str, Any]]:
        said = {name: row[name] for name in OF_PUT if name in row and row[name] is not None}
        options = {**self.constant, **said}
        for name in ("queue", "klass"):
            if name not in options:
                raise ValueError(f"{name} is null")
        if "jid" in row and row["jid"] is None:
            raise ValueError("jid is null: leave the column out, and jids are derived from the rows")
        queue, klass = names.checked("queue", options.pop("queue")), options.pop("klass")
        data = self._data(row)
        options.pop("data", None)
        options.setdefault("jid", self._derived(row))
        return queue, NewJob(klass, data, **options).arguments(self.max_data, seal)

    def _data(self, row: Row) -> Any:
        if "data" in row:
            if isinstance(row["data"], str):
                return msgspec.Raw(row["data"].encode())
            return without_nulls(row["data"]) if self.drop_nulls else row["data"]
        data = {name: value for name, value in row.items() if name not in OF_PUT}
        return without_nulls(data) if self.drop_nulls else data

    def _derived(self, row: Row) -> str:
        """The same row of the same batch makes the same jid, whoever puts it and how often."""
        told = msgspec.json.encode([self.batch, self.constant.get("queue"), self.constant.get("klass"), row], order="sorted")
        return hashlib.sha256(told).hexdigest()[:32]


def without_nulls(value: Any) -> Any:
    """Objects without the fields that Spark has added to them, since others have them."""
    if isinstance(value, dict):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


def shown(row: Row) -> str:
    try:
        return msgspec.json.encode(row, order="sorted").decode()
    except (TypeError, ValueError, msgspec.MsgspecError):
        return repr(row)


def _fits(kind: str, type: pa.DataType) -> bool:
    match kind:
        case "a string":
            return bool(pa.types.is_string(type) or pa.types.is_large_string(type))
        case "a number":
            return bool(pa.types.is_integer(type) or pa.types.is_floating(type))
        case "a whole number":
            return bool(pa.types.is_integer(type))
        case _:
            return bool(pa.types.is_list(type) and pa.types.is_string(type.value_type))
