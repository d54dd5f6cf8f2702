"""A table of the lake: its files, its rows, and changes of it, each one commit of delta-rs."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar
from urllib.parse import unquote

import pyarrow as pa
from deltalake import (
    CommitProperties,
    DeltaTable,
    Field,
    Transaction,
    WriterProperties,
    write_deltalake,
)
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction

from aioqless.contrib.lake.schema import PARTITION_COLUMNS, Table
from aioqless.contrib.lake.storage import LakeError, Storage, explain_failure

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset

VERSION_PROPERTY: Final = "aioqless.version"
ORPHAN_HOURS: Final = 24  # writers may take so long from writing files to committing them
_OF_FILES: Final = ["path", "size_bytes", "num_records", "partition"]
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_READ_AT_ONCE: Final = 16 * 2**20  # compressed bytes, of which SQL finds the rows in memory
_KEPT_AT_ONCE: Final = 256 * 2**20  # bytes of these rows
_FILE_SIZE: Final = 64 * 2**20  # bytes of a merged file, about
_WRITTEN: Final = WriterProperties(
    compression="ZSTD",
    compression_level=1,
    max_row_group_size=131_072,  # a task of Spark reads at least one
)
_MARK: Final = "aioqless.commit"
_LOG: Final = "_delta_log/{:020}.json"
_CHECKPOINT: Final = "_delta_log/{:020}.checkpoint.parquet"
_LAST_CHECKPOINT: Final = "_delta_log/_last_checkpoint"

Partition: TypeAlias = tuple[str, date]  # a namespace and a day
Done = TypeVar("Done")


class ConcurrentCommit(LakeError):
    """Another process changed the table since it was opened; nothing was committed."""


def whole_of(namespace: str) -> str:
    """Return the namespace that a partition is part of; of others, the namespace itself."""
    return re.sub(r"(?<=[^{}])\{\d+\.\d+\}$", "", namespace)


def condition_of(partitions: Collection[Partition]) -> str:
    """Return the SQL condition that a row is in one of the partitions."""
    namespaces: dict[frozenset[date], list[str]] = {}
    for name in {name for name, _ in partitions}:
        days = frozenset(day for of, day in partitions if of == name)
        namespaces.setdefault(days, []).append("'" + name.replace("'", "''") + "'")
    conditions = []
    for days, names in namespaces.items():
        dates = ", ".join(f"DATE '{day}'" for day in sorted(days))
        conditions.append(f"(namespace IN ({', '.join(names)}) AND date IN ({dates}))")
    return " OR ".join(conditions)


@dataclass(frozen=True)
class DataFile:
    """A Parquet file of a table, with the greatest values of some columns."""

    path: str
    size: int
    rows: int
    namespace: str
    date: date
    greatest: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def partition(self) -> Partition:
        """The namespace and the day."""
        return self.namespace, self.date


@dataclass(frozen=True)
class AddedFile:
    """A file that was written for a table; no version has it before it is committed.

    `statistics` are those of Delta's log, as JSON.
    """

    path: str
    size: int
    rows: int
    namespace: str
    date: date
    statistics: str


class OpenTable:
    """A table at the version that was last read or committed here.

    A change fails if another process has since committed a transaction of the same name, or removed
    a file that is changed.
    """

    def __init__(self, table: Table, storage: Storage, opened: DeltaTable) -> None:
        self.table = table
        self.storage = storage
        self.delta = opened
        self._files: tuple[int, list[DataFile]] | None = None
        self._transactions: tuple[int, dict[str, int | None]] = (-1, {})

    def __reduce__(self) -> tuple[Any, ...]:
        """Have a task open the same version."""
        return _open, (self.table, self.storage, self.version)

    def update(self) -> None:
        """Read what other processes have committed."""
        try:
            self.delta.update_incremental()
        except (DeltaError, OSError) as error:
            raise explain_failure(self.storage.url, error) from None

    @property
    def schema(self) -> pa.Schema:
        """The declared columns, and those that the user added."""
        declared = [pa.field(each.name, each.type) for each in self.table.schema]
        names = {each.name for each in declared}
        stored = pa.schema(self.delta.schema().to_arrow())
        added = [pa.field(each.name, each.type) for each in stored if each.name not in names]
        return pa.schema([*declared, *added])

    @property
    def version(self) -> int:
        """The version in Delta's log."""
        return int(self.delta.version())

    @property
    def table_id(self) -> str:
        """The id that the table got when it was made; copies of the lake have the same."""
        return str(self.delta.metadata().id)

    @property
    def is_outdated(self) -> bool:
        """Whether columns had another meaning when the table was written."""
        return int(self.find_property(VERSION_PROPERTY) or 1) < self.table.version

    def find_property(self, name: str) -> str | None:
        """Return a property of the table."""
        return self.delta.metadata().configuration.get(name)

    def set_property(self, name: str, value: str) -> None:
        """Set a property of the table."""
        self._change(
            lambda properties: self.delta.alter.set_table_properties(
                {name: value}, raise_if_not_exists=False, commit_properties=properties
            )
        )

    def find_missing(self, fields: Mapping[str, Field]) -> list[Field]:
        """Return the columns, given by name, that the table lacks."""
        known = {each.name for each in self.delta.schema().fields}
        return [field for name, field in fields.items() if name not in known]

    def add_columns(self, columns: list[Field]) -> None:
        """Add columns, which are null in the rows that are there."""
        self._change(
            lambda properties: self.delta.alter.add_columns(columns, commit_properties=properties)
        )

    def transaction(self, name: str) -> int | None:
        """Return the number that was last committed under a transaction name, or None.

        delta-rs reads all of the log for each.
        """
        if self._transactions[0] != self.version:
            self._transactions = self.version, {}
        known = self._transactions[1]
        if name not in known:
            known[name] = self.delta.transaction_version(name)
        return known[name]

    @property
    def all_files(self) -> list[DataFile]:
        """All files, by namespace, date and path."""
        if self._files is None or self._files[0] != self.version:
            self._files = (
                self.version,
                sorted(self._list_files(), key=lambda file: (file.namespace, file.date, file.path)),
            )
        return self._files[1]

    def _list_files(self) -> Iterable[DataFile]:
        # Neither pa.table() nor timestamps as objects of Python, for which pyarrow imports pandas.
        actions = pa.RecordBatchReader.from_stream(self.delta.get_add_actions()).read_all()
        files = actions.select(_OF_FILES).to_pylist()
        for each, greatest in zip(files, _read_greatest(actions), strict=True):
            yield DataFile(
                unquote(each["path"]),
                each["size_bytes"],
                each["num_records"],
                each["partition"]["namespace"],
                each["partition"]["date"],
                greatest,
            )

    def files(
        self,
        namespace: str | None = None,
        dates: Collection[date] | None = None,
        *,
        within: str | None = None,
    ) -> list[DataFile]:
        """List files.

        Args:
            namespace: Files of this namespace only.
            dates: Files of these days only.
            within: Files of this namespace and of its partitions only.
        """
        return [
            each
            for each in self.all_files
            if namespace in (None, each.namespace)
            and within in (None, each.namespace, whole_of(each.namespace))
            and (dates is None or each.date in dates)
        ]

    def rows(self, partitions: Collection[Partition]) -> Dataset | pa.Table:
        """Return rows for SQL: few are read now, many when they are asked for."""
        chosen = [each for each in self.all_files if each.partition in partitions]
        if sum(each.size for each in chosen) <= _READ_AT_ONCE:
            found, size = list[pa.RecordBatch](), 0
            for batch in self.scan(partitions, self.schema):
                found.append(batch)
                size += batch.nbytes
                if size > _KEPT_AT_ONCE:
                    break
            else:
                return pa.Table.from_batches(found, self.schema)
        return self.delta.to_pyarrow_dataset(
            file_pruning_predicate=condition_of(partitions), schema=self.schema
        )

    def read(
        self,
        partitions: Collection[Partition],
        columns: Collection[str] | None = None,
        where: str = "true",
    ) -> pa.Table:
        """Return rows of some partitions; columns that are newer than the table are null."""
        schema = self.schema
        if columns is not None:
            schema = pa.schema([schema.field(name) for name in columns])
        return pa.Table.from_batches(list(self.scan(partitions, schema, where)), schema)

    def scan(
        self, partitions: Collection[Partition], schema: pa.Schema, where: str = "true"
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows of some partitions in a schema, some at a time; see `read`."""
        if not partitions:
            return
        stored = {each.name for each in self.delta.schema().fields}
        found = self.delta.scan(
            [name for name in schema.names if name in stored],
            f"({condition_of(partitions)}) AND ({where})",
        )
        try:
            for each in pa.RecordBatchReader.from_stream(found):
                yield conform(each, schema)
        except (pa.ArrowException, OSError) as error:
            if "not found" not in str(error):
                raise explain_failure(self.storage.url, error) from None
            raise ConcurrentCommit(
                f"another process deleted files of {self.storage.url} meanwhile"
            ) from None

    def append(
        self, rows: Iterable[pa.RecordBatch], transactions: Mapping[str, int] | None = None
    ) -> None:
        """Add rows in one commit, which records numbers under transaction names.

        Columns that the rows lack are null.

        Raises:
            ConcurrentCommit: Another process committed under one of these names.
        """
        schema = self.schema
        batches = [conform(each, schema) for each in rows]
        self._change(
            lambda properties: write_deltalake(
                self.delta,
                pa.RecordBatchReader.from_batches(schema, batches),
                mode="append",
                schema_mode="merge",
                commit_properties=properties,
                writer_properties=_WRITTEN,
            ),
            transactions,
        )

    def commit(
        self,
        added: Collection[AddedFile],
        removed: Collection[DataFile] = (),
        transactions: Mapping[str, int] | None = None,
    ) -> None:
        """Add files and remove others in one commit; see `append`.

        Raises:
            ConcurrentCommit: Another process committed under one of these names, or removed one of
                the files.
        """
        now = int(time.time() * 1000)
        actions: list[AddAction | RemoveAction] = [
            AddAction(each.path, each.size, _values_of(each), now, True, each.statistics)
            for each in added
        ]
        actions += [
            RemoveAction(each.path, True, now, each.size, _values_of(each)) for each in removed
        ]

        def commit(properties: CommitProperties) -> None:
            self.delta.create_write_transaction(
                actions,
                "append",
                self.delta.schema(),
                list(PARTITION_COLUMNS),
                commit_properties=properties,
            )
            self.delta.update_incremental()

        self._change(commit, transactions)

    def delete(
        self, partitions: Collection[Partition], transactions: Mapping[str, int] | None = None
    ) -> None:
        """Delete some partitions; see `append`."""
        self._change(
            lambda properties: self.delta.delete(
                condition_of(partitions), commit_properties=properties
            ),
            transactions,
        )

    def optimize(self) -> int:
        """Merge small files of each partition, and return the number of files that it has less.

        No row changes by it, which Delta's log says, so that readers of changes skip it.
        """
        done = self._change(
            lambda properties: self.delta.optimize.compact(
                target_size=_FILE_SIZE, writer_properties=_WRITTEN, commit_properties=properties
            )
        )
        return int(done["numFilesRemoved"] - done["numFilesAdded"]) if done else 0

    def update_rows(self, values: Mapping[str, str], where: str) -> int:
        """Give columns of some rows the values of SQL expressions; return the number of files."""
        done = self._change(
            lambda properties: self.delta.update(
                dict(values),
                predicate=where,
                writer_properties=_WRITTEN,
                commit_properties=properties,
            )
        )
        return int(done["num_removed_files"]) if done else 0

    def _change(
        self,
        change: Callable[[CommitProperties], Done],
        transactions: Mapping[str, int] | None = None,
    ) -> Done | None:
        """Call a function that commits, and make durable what it wrote.

        If the store's answer to the commit was lost, delta-rs repeats it and finds that version
        written, as if by another process; the mark says by whom.
        """
        mark, before, done = uuid.uuid4().hex, self.version, None
        named = [Transaction(*each) for each in (transactions or {}).items()]
        try:
            done = change(CommitProperties({_MARK: mark}, app_transactions=named))
        except CommitFailedError as error:
            self.update()
            if self.version == before:  # no other process committed
                raise explain_failure(self.storage.url, error) from None
            logs = map(self._read_log, range(before + 1, self.version + 1))
            if not any(mark in text for text in logs):
                raise ConcurrentCommit(
                    f"another process changed {self.storage.url} meanwhile; nothing was committed"
                ) from None
        except (DeltaError, OSError) as error:
            raise explain_failure(self.storage.url, error) from None
        if self.version == before + 1 and self._transactions[0] == before:
            self._transactions = self.version, {**self._transactions[1], **(transactions or {})}
        if self.storage.is_local:
            for version in range(before + 1, self.version + 1):
                self._make_durable(version)
        return done

    def _read_log(self, version: int) -> str:
        with self.storage.filesystem.open_input_file(_LOG.format(version)) as file:
            return str(file.read(), "utf-8")

    def _make_durable(self, version: int) -> None:
        """Force a commit to disk, and the files that it adds."""
        checkpoint = [_CHECKPOINT.format(version), _LAST_CHECKPOINT]
        self.storage.make_durable(
            [*self._list_files_of(version, "add"), _LOG.format(version), *checkpoint]
        )

    def _list_files_of(self, version: int, action: str) -> list[str]:
        """List the files that a commit adds or removes, by the name of the action."""
        actions = map(json.loads, self._read_log(version).splitlines())
        return [unquote(each[action]["path"]) for each in actions if action in each]

    def check_files(self, *, forget: bool) -> None:
        """Check that a table on a local disk has the files that it records, also after a power cut.

        Args:
            forget: Remove damaged files from the table, unless the last commit added them: its
                events are still in Redis.

        Raises:
            LakeError: A file is missing, or hasn't the size that it had.
        """
        while self._find_damaged_files():
            self.update()  # another process may have deleted them
            if not (damaged := self._find_damaged_files()):
                return
            place, version = Path(self.storage.url), self.version
            remedy = "Restore the lake from a backup; --take-over continues without its events"
            is_last = {*damaged} & {*self._list_files_of(version, "add")}
            if is_last and not self._list_files_of(version, "remove"):
                names = (_LOG.format(version), _CHECKPOINT.format(version))
                found = " and ".join(name for name in names if (place / name).exists())
                remedy = f"Delete {found} there, and its events are archived again"
            elif forget:
                for path in damaged:
                    (place / path).unlink(missing_ok=True)
                with suppress(ConcurrentCommit):  # of another archiver that does so
                    self._change(lambda commit: self.delta.repair(commit_properties=commit))
                continue
            raise LakeError(
                f"{damaged[0]} in {place} is missing or cut off, as after a power cut. {remedy}"
            )

    def _find_damaged_files(self) -> list[str]:
        """List the files on a local disk that haven't the size that they had."""
        if not self.storage.is_local:
            return []
        files = {each: Path(self.storage.url, each.path) for each in self.all_files}
        return [
            each.path
            for each, file in files.items()
            if not file.exists() or file.stat().st_size != each.size
        ]

    def delete_files(self, hours: int) -> int:
        """Delete files that no version younger than some hours has, and old orphans.

        Orphans are files that no version ever had, such as those of killed processes. Younger ones
        stay: a writer at work may be about to commit them. Return their number.

        Versions older than that can no longer be read; nor can they by processes that read now.
        """
        self._find_deletable(hours, delete=True)
        filesystem = self.storage.filesystem
        for path in self._find_orphans(ORPHAN_HOURS):
            filesystem.delete_file(path)
        return len(self._find_orphans(0))

    def _find_orphans(self, hours: int) -> set[str]:
        of_versions = self._find_deletable(hours)
        return {*self._find_deletable(hours, orphans=True)}.difference(of_versions)

    def _find_deletable(
        self, hours: int, *, orphans: bool = False, delete: bool = False
    ) -> list[str]:
        try:
            return self.delta.vacuum(
                retention_hours=hours,
                dry_run=not delete,
                enforce_retention_duration=False,
                full=orphans,
            )
        except (DeltaError, OSError) as error:
            raise explain_failure(self.storage.url, error) from None


def _open(table: Table, storage: Storage, version: int) -> OpenTable:
    return OpenTable(table, storage, DeltaTable(storage.url, version, dict(storage.options)))


def conform(
    rows: pa.RecordBatch, schema: pa.Schema, constants: Mapping[str, str] | None = None
) -> pa.RecordBatch:
    """Return rows in this schema; columns that they lack are constants, or null."""
    columns = []
    for each in schema:
        if each.name in rows.schema.names:
            columns.append(rows[each.name].cast(each.type))
        elif constants and each.name in constants:
            value = pa.scalar(constants[each.name]).cast(each.type)
            columns.append(pa.repeat(value, len(rows)))
        else:
            columns.append(pa.nulls(len(rows), each.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _values_of(file: AddedFile | DataFile) -> dict[str, str | None]:
    return {"namespace": file.namespace, "date": file.date.isoformat()}


def _read_greatest(actions: pa.Table) -> list[dict[str, Any]]:
    """Return the known greatest values of each file."""
    found: list[dict[str, Any]] = [{} for _ in range(actions.num_rows)]
    if "max" in actions.column_names:
        for field, column in zip(actions["max"].type, actions["max"].flatten(), strict=True):
            is_time = pa.types.is_timestamp(field.type)
            values = column.cast(pa.int64()) if is_time else column
            for known, value in zip(found, values.to_pylist(), strict=True):
                if value is not None:
                    known[field.name] = _EPOCH + timedelta(microseconds=value) if is_time else value
    return found
