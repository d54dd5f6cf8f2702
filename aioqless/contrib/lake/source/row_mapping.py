"""Rows as jobs: which column says what, and why a row can't be a job."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import msgspec
import pyarrow as pa

from aioqless import validation
from aioqless.client import job_data
from aioqless.client.codec import Codec
from aioqless.client.put import NewJob, PreparedJob
from aioqless.contrib.lake.source.options import Options
from aioqless.errors import InvalidData

OPTIONS = (
    "queue",
    "klass",
    "priority",
    "delay",
    "retries",
    "tags",
    "batch",
    "maxData",
    "dropNulls",
)
CHECKS: Mapping[str, Callable[[Any], Any]] = {  # of what a column of the name says
    "queue": partial(validation.check_name, "queue"),
    "klass": partial(validation.check_name, "klass"),
    "jid": validation.check_jid,
    "priority": partial(validation.check_number, "priority"),
    "delay": partial(validation.check_number, "delay", least=0),
    "retries": partial(validation.check_number, "retries", least=0),
    "tags": partial(validation.check_names, "tags"),
    "depends": partial(validation.check_names, "depends"),
}
NEEDED = {
    "queue": "",
    "klass": "",
    "jid": ": leave the column out, and jids are derived from the rows",
}
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

    A column of these names is what it says: queue, klass, jid, data, priority, delay, retries,
    tags, depends. Without a column `data`, the other columns are the data, as an object. A text in
    `data` is JSON. `drop_nulls` leaves out what is null in it."""

    constant: Mapping[str, Any]
    batch: str = ""
    max_data: int = 1 << 20
    drop_nulls: bool = False

    @classmethod
    def of(cls, options: Options, schema: pa.Schema) -> Recipe:
        """Raises ValueError for a column of another kind, and for rows that nothing gives a queue
        or a klass."""
        for name in set(schema.names) & KINDS.keys():
            if not _fits(KINDS[name], schema.field(name).type):
                raise ValueError(
                    f"the column {name!r} must be {KINDS[name]}, not {schema.field(name).type}"
                )
        constant: dict[str, Any] = {
            "queue": options.text("queue"),
            "klass": options.text("klass"),
            "priority": options.number("priority", None),
            "delay": options.number("delay", None),
            "retries": options.whole("retries", None, least=0),
            "tags": None
            if (tags := options.text("tags")) is None
            else [tag.strip() for tag in tags.split(",")],
        }
        for name in ("queue", "klass"):
            if constant[name] is None and name not in schema.names:
                raise ValueError(
                    f"there is no column {name!r} and no option: say .option({name!r}, …)"
                )
            if constant[name] is not None:
                validation.check_name(name, constant[name])
        max_data = options.whole("maxData", 1 << 20) or 0
        given = {name: value for name, value in constant.items() if value is not None}
        recipe = cls(given, options.text("batch") or "", max_data, options.truth("dropNulls"))
        recipe._usual()
        return recipe

    def jobs(
        self, batch: pa.RecordBatch, codec: Codec
    ) -> Iterator[tuple[str, PreparedJob] | Reject]:
        """Each row as its queue and what the put scripts take, or the reason why not."""
        columns = _Columns.of(batch.schema.names)
        usual = self._usual()
        for row in batch.to_pylist():
            try:
                yield self._job(row, columns, usual, codec)
            except (ValueError, TypeError, InvalidData) as why:
                yield Reject(str(why), shown(row))

    def _usual(self) -> PreparedJob:
        """What the scripts take of a job of which its row says nothing. Raises ValueError for an
        option that can't be."""
        return NewJob(
            **{
                "klass": "?",
                **{name: value for name, value in self.constant.items() if name != "queue"},
            }
        ).prepare(self.max_data)

    def _job(
        self, row: Row, columns: _Columns, usual: PreparedJob, codec: Codec
    ) -> tuple[str, PreparedJob]:
        """NewJob's arguments for a row. Most of them are the same for all rows, so only what a row
        says is checked for each."""
        job: dict[str, Any] = {**usual, "jid": None}
        for name in columns.said:
            if (value := row[name]) is not None:
                job[name] = CHECKS[name](value)
            elif name not in self.constant and name in NEEDED:
                raise ValueError(f"{name} is null{NEEDED[name]}")
        queue = job.pop("queue", None) or self.constant["queue"]
        text = job_data.encode(self._data(row, columns), self.max_data)
        job["data"] = codec.encode(text, job["klass"])
        if job["jid"] is None:
            job["jid"] = self._derived(row)
        return queue, cast(PreparedJob, job)

    def _data(self, row: Row, columns: _Columns) -> Any:
        if columns.of_data is not None:
            data: Any = {name: row[name] for name in columns.of_data}
        elif isinstance(row["data"], str):
            return msgspec.Raw(row["data"].encode())
        else:
            data = row["data"]
        return without_nulls(data) if self.drop_nulls else data

    def _derived(self, row: Row) -> str:
        """The same row of the same batch makes the same jid, whoever puts it and how often."""
        told = msgspec.json.encode(
            [self.batch, self.constant.get("queue"), self.constant.get("klass"), row],
            order="sorted",
        )
        return hashlib.sha256(told).hexdigest()[:32]


@dataclass(frozen=True)
class _Columns:
    """Which columns of a batch say something of the job, and which are its data, where no column is
    that."""

    said: list[str]
    of_data: list[str] | None

    @classmethod
    def of(cls, columns: list[str]) -> _Columns:
        data = None if "data" in columns else [name for name in columns if name not in CHECKS]
        return cls([name for name in CHECKS if name in columns], data)


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
