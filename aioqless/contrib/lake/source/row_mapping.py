"""Maps rows to jobs, or to the reason why a row can't be one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa

from aioqless import validation
from aioqless.client import PutManyRow
from aioqless.client.codec import Codec
from aioqless.client.new_job import NewJob, encode_job
from aioqless.client.put_options import PUT
from aioqless.contrib.lake.source.options import SaveOptions
from aioqless.errors import InvalidData

# What an error adds if the column is null.
NOT_NULL = {
    "queue": "",
    "klass": "",
    "jid": ": leave the column out, and jids are derived from the rows",
}
# What the values of a column must be, for each column that isn't data.
KINDS = {
    "queue": "a string",
    "klass": "a string",
    "jid": "a string",
    "priority": "a number",
    "delay": "a number",
    "retries": "an integer",
    "tags": "an array of strings",
    "depends": "an array of strings",
}

Row = dict[str, Any]


@dataclass(frozen=True)
class Reject:
    """A row that can't be a job, as JSON, and the reason."""

    reason: str
    row: str


@dataclass(frozen=True)
class RowMapping:
    """How rows become jobs.

    The columns queue, klass, jid, data, priority, delay, retries, tags and depends are used as
    such; a string in `data` is JSON. Without a column `data`, all other columns are the data, as an
    object.

    Attributes:
        constant: Values for rows that lack them.
        batch: The name of the load, from which jids are derived.
        max_data: Maximum size of the data, in bytes.
        drop_nulls: Leave fields that are null out of the data.
    """

    constant: Mapping[str, Any]
    batch: str = ""
    max_data: int = 1 << 20
    drop_nulls: bool = False

    @classmethod
    def of(cls, options: SaveOptions, schema: pa.Schema) -> RowMapping:
        """Return the mapping for the columns of a schema.

        Raises:
            ValueError: A column has a wrong type, an option is invalid, or neither a column nor an
                option gives the queue or the klass.
        """
        for name in set(schema.names) & KINDS.keys():
            if not _is_of_kind(KINDS[name], schema.field(name).type):
                raise ValueError(
                    f"the column {name!r} must be {KINDS[name]}, not {schema.field(name).type}"
                )
        names = ("queue", "klass", "priority", "delay", "retries")
        constant: dict[str, Any] = {name: getattr(options, name) for name in names}
        if options.tags is not None:
            constant["tags"] = [tag.strip() for tag in options.tags.split(",")]
        for name in ("queue", "klass"):
            if constant[name] is None and name not in schema.names:
                raise ValueError(
                    f"there is no column {name!r} and no option: give .option({name!r}, …)"
                )
            if constant[name] is not None:
                validation.check_name(name, constant[name])
        given = {name: value for name, value in constant.items() if value is not None}
        PUT.check({name: value for name, value in given.items() if name in PUT.names})
        return cls(given, options.batch, options.max_data, options.drop_nulls)

    def jobs(
        self, batch: pa.RecordBatch, codec: Codec
    ) -> Iterator[tuple[str, PutManyRow] | Reject]:
        """Yield each row as its queue and job, or as the reason why it can't be one."""
        columns = _Columns.of(batch.schema.names)
        for row in batch.to_pylist():
            try:
                yield self._job(row, columns, codec)
            except (ValueError, TypeError, InvalidData) as why:
                yield Reject(str(why), format_row(row))

    def _job(self, row: Row, columns: _Columns, codec: Codec) -> tuple[str, PutManyRow]:
        """Return the queue and the job of a row."""
        given = dict(self.constant)
        for name in columns.fields:
            if (value := row[name]) is not None:
                given[name] = value
            elif name not in self.constant and name in NOT_NULL:
                raise ValueError(f"{name} is null{NOT_NULL[name]}")
        queue, klass = validation.check_name("queue", given.pop("queue")), given.pop("klass")
        if "jid" not in given:
            given["jid"] = self._derive_jid(row)
        job = NewJob(klass, self._data(row, columns), **given)
        return queue, encode_job(job, self.max_data, codec)

    def _data(self, row: Row, columns: _Columns) -> Any:
        if columns.data is not None:
            data: Any = {name: row[name] for name in columns.data}
        elif isinstance(row["data"], str):
            return msgspec.Raw(row["data"].encode())
        else:
            data = row["data"]
        return remove_nulls(data) if self.drop_nulls else data

    def _derive_jid(self, row: Row) -> str:
        """Return a jid that is the same for the same row of the same batch."""
        identity = msgspec.json.encode(
            [self.batch, self.constant.get("queue"), self.constant.get("klass"), row],
            order="sorted",
        )
        return hashlib.sha256(identity).hexdigest()[:32]


@dataclass(frozen=True)
class _Columns:
    """Which columns become fields of a job, and which its data (None: the column `data` does)."""

    fields: list[str]
    data: list[str] | None

    @classmethod
    def of(cls, columns: list[str]) -> _Columns:
        data = None if "data" in columns else [name for name in columns if name not in KINDS]
        return cls([name for name in KINDS if name in columns], data)


def remove_nulls(value: Any) -> Any:
    """Return a value without the fields that are null, which Spark adds if other rows have them."""
    if isinstance(value, dict):
        return {name: remove_nulls(each) for name, each in value.items() if each is not None}
    return [remove_nulls(each) for each in value] if isinstance(value, list) else value


def format_row(row: Row) -> str:
    """Return a row as JSON, or as Python writes it if it has other values."""
    try:
        return msgspec.json.encode(row, order="sorted").decode()
    except (TypeError, ValueError, msgspec.MsgspecError):
        return repr(row)


def _is_of_kind(kind: str, type: pa.DataType) -> bool:
    match kind:
        case "a string":
            return bool(pa.types.is_string(type) or pa.types.is_large_string(type))
        case "a number":
            return bool(pa.types.is_integer(type) or pa.types.is_floating(type))
        case "an integer":
            return bool(pa.types.is_integer(type))
        case _:
            return bool(pa.types.is_list(type) and pa.types.is_string(type.value_type))
