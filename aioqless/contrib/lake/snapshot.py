"""A table of the lake at one version: its files, and the next version's commit."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Any, Final, TypeVar
from urllib.parse import unquote

import pyarrow as pa
from deltalake import (
    CommitProperties,
    DeltaTable,
    Schema,
    Transaction,
    WriterProperties,
    write_deltalake,
)
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction

from aioqless.contrib.lake.schema import PARTITION_COLUMNS, Table
from aioqless.contrib.lake.storage import LakeError, Storage, explain_failure

VERSION_PROPERTY: Final = "aioqless.version"
ORPHAN_HOURS: Final = 24  # writers may take so long from writing files to committing them
_OF_FILES: Final = ["path", "size_bytes", "num_records", "partition"]
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FILE_SIZE: Final = 64 * 2**20  # bytes of a merged file, about
_WRITTEN: Final = WriterProperties(compression="ZSTD", compression_level=1)


Done = TypeVar("Done")


class ConcurrentCommit(LakeError):
    """Another process changed the table since the snapshot was taken; nothing was committed."""


def retry_conflicts(change: Callable[[], int], attempts: int = 5) -> int:
    """Call a function that commits, again if another process commits meanwhile.

    Raises:
        ConcurrentCommit: Another process committed first at each attempt.
    """
    for _ in range(attempts - 1):
        try:
            return change()
        except ConcurrentCommit:
            continue
    return change()


def whole_of(namespace: str) -> str:
    """Return the namespace that a partition is part of; of others, the namespace itself."""
    return re.sub(r"(?<=[^{}])\{\d+\.\d+\}$", "", namespace)


@dataclass(frozen=True)
class DataFile:
    """A Parquet file of a table, with the least and greatest values of some columns."""

    path: str
    size: int
    rows: int
    namespace: str
    date: date
    least: Mapping[str, Any] = field(default_factory=dict, hash=False)
    greatest: Mapping[str, Any] = field(default_factory=dict, hash=False)


class Snapshot:
    """A table at one version, which never changes.

    Later versions come by `commit`, which fails if another process has meanwhile committed a
    transaction of the same name, or removed one of the same files.
    """

    def __init__(self, table: Table, storage: Storage, opened: DeltaTable) -> None:
        self.table = table
        self.storage = storage
        self._opened = opened

    @property
    def version(self) -> int:
        """The version in Delta's log."""
        return int(self._opened.version())

    @property
    def table_id(self) -> str:
        """The id that the table got when it was made; copies of the lake have the same."""
        return str(self._opened.metadata().id)

    @property
    def is_outdated(self) -> bool:
        """Whether columns had another meaning when the table was written."""
        properties = self._opened.metadata().configuration
        return int(properties.get(VERSION_PROPERTY) or 1) < self.table.version

    def transaction(self, name: str) -> int | None:
        """Return the number that was last committed under a transaction name, or None."""
        return self._opened.transaction_version(name)

    @cached_property
    def all_files(self) -> list[DataFile]:
        """All files, by namespace, date and path."""
        # Neither pa.table() nor timestamps as objects of Python, for which pyarrow imports pandas.
        actions = pa.RecordBatchReader.from_stream(self._opened.get_add_actions()).read_all()
        bounds = {name: _read_bounds(actions, name) for name in ("min", "max")}
        found = [
            DataFile(
                unquote(each["path"]),
                each["size_bytes"],
                each["num_records"],
                each["partition"]["namespace"],
                each["partition"]["date"],
                bounds["min"][row],
                bounds["max"][row],
            )
            for row, each in enumerate(actions.select(_OF_FILES).to_pylist())
        ]
        return sorted(found, key=lambda file: (file.namespace, file.date, file.path))

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

    def commit(
        self,
        added: Collection[AddAction] = (),
        removed: Iterable[DataFile] = (),
        transactions: Mapping[str, int] | None = None,
    ) -> Snapshot:
        """Add and remove files in one step, and return the table's new version.

        Args:
            added: Files that were written, as `write` returns them.
            removed: Files of this snapshot that are replaced or deleted.
            transactions: Numbers to record under transaction names, such as a position.

        Raises:
            ConcurrentCommit: Another process committed under one of these names, or removed one of
                these files, since this snapshot was taken.
        """
        now = int(time.time() * 1000)
        gone = [
            RemoveAction(
                each.path,
                data_change=True,
                deletion_timestamp=now,
                size=each.size,
                partition_values={"namespace": each.namespace, "date": each.date.isoformat()},
            )
            for each in removed
        ]
        self.storage.make_durable([each.path for each in added])
        try:
            self._opened.create_write_transaction(
                [*added, *gone],
                "append",
                Schema.from_arrow(self.table.schema),
                list(PARTITION_COLUMNS),
                commit_properties=_properties(transactions),
            )
        except CommitFailedError as error:
            latest = self._latest()
            if not latest.contains(added, gone, transactions or {}):
                raise self._explain(error, latest) from None
        except (DeltaError, OSError) as error:
            raise explain_failure(self.storage.url, error) from None
        else:
            latest = self._latest()
        self._make_log_durable(latest)
        return latest

    def append(self, rows: pa.RecordBatch, transactions: Mapping[str, int] | None = None) -> None:
        """Add rows, in any order of partitions; see `commit` for the errors."""
        self._change(
            lambda opened: write_deltalake(
                opened,
                rows,
                mode="append",
                schema_mode="merge",
                commit_properties=_properties(transactions),
                writer_properties=_WRITTEN,
            ),
            self.version,
        )

    def optimize(self) -> int:
        """Merge small files of each partition, and return the number of files that it has less.

        No row changes by it, which Delta's log says, so that readers of changes skip it.
        See `update` for the errors.
        """
        done = self._change(
            lambda opened: opened.optimize.compact(
                target_size=_FILE_SIZE, writer_properties=_WRITTEN
            )
        )
        return int(done["numFilesRemoved"] - done["numFilesAdded"])

    def update(self, values: Mapping[str, str], where: str) -> int:
        """Give columns of some rows the values of SQL expressions; return the number of files.

        Raises:
            ConcurrentCommit: Another process removed one of the files meanwhile.
        """
        done = self._change(
            lambda opened: opened.update(dict(values), predicate=where, writer_properties=_WRITTEN)
        )
        return int(done["num_removed_files"])

    def _change(self, change: Callable[[DeltaTable], Done], version: int | None = None) -> Done:
        """Call a function that commits by itself, and make durable what it wrote."""
        before = {each.path for each in self.all_files}
        try:
            done = change(self._open(version))
        except CommitFailedError as error:
            raise self._explain(error, self._latest()) from None
        except (DeltaError, OSError) as error:
            raise explain_failure(self.storage.url, error) from None
        latest = self._latest()
        self.storage.make_durable(
            [each.path for each in latest.all_files if each.path not in before]
        )
        self._make_log_durable(latest)
        return done

    def vacuum(self, hours: int) -> int:
        """Delete files that no version younger than some hours has. Return how many.

        Versions older than that can no longer be read; nor can they by processes that read now.
        """
        return len(self._find_deletable(hours, delete=True))

    def find_orphans(self, hours: int = 0) -> list[str]:
        """List files of an age that no version ever had, such as those of killed processes."""
        of_versions = self._find_deletable(hours)
        return sorted({*self._find_deletable(hours, orphans=True)}.difference(of_versions))

    def delete_orphans(self) -> None:
        """Delete the orphans of which no writer at work may be about to commit."""
        filesystem = self.storage.filesystem
        for path in self.find_orphans(ORPHAN_HOURS):
            filesystem.delete_file(path)

    def _find_deletable(
        self, hours: int, *, orphans: bool = False, delete: bool = False
    ) -> list[str]:
        try:
            return self._open().vacuum(
                retention_hours=hours,
                dry_run=not delete,
                enforce_retention_duration=False,
                full=orphans,
            )
        except (DeltaError, OSError) as error:
            raise explain_failure(self.storage.url, error) from None

    def _open(self, version: int | None = None) -> DeltaTable:
        options = dict(self.storage.options)
        try:
            return DeltaTable(self.storage.url, version, options)
        except (DeltaError, OSError) as error:
            raise explain_failure(self.storage.url, error) from None

    def _latest(self) -> Snapshot:
        return Snapshot(self.table, self.storage, self._open())

    def contains(
        self,
        added: Collection[AddAction],
        removed: Collection[RemoveAction],
        transactions: Mapping[str, int],
    ) -> bool:
        """Whether a commit is in this version, although the answer of the store was lost.

        delta-rs then repeats it, and finds that version written, as if by another process.
        """
        paths = {each.path for each in self.all_files}
        return (
            bool(added)  # otherwise another process may have committed the same
            and all(each.path in paths for each in added)
            and not any(each.path in paths for each in removed)
            and all(self.transaction(name) == number for name, number in transactions.items())
        )

    def _explain(self, error: CommitFailedError, latest: Snapshot) -> LakeError:
        if latest.version == self.version:  # no other process committed
            return explain_failure(self.storage.url, error)
        return ConcurrentCommit(
            f"another process changed {self.storage.url} meanwhile; nothing was committed"
        )

    def _make_log_durable(self, latest: Snapshot) -> None:
        versions = range(self.version + 1, latest.version + 1)
        self.storage.make_durable([f"_delta_log/{version:020}.json" for version in versions])


def _properties(transactions: Mapping[str, int] | None) -> CommitProperties:
    named = [Transaction(*each) for each in (transactions or {}).items()]
    return CommitProperties(app_transactions=named)


def _read_bounds(actions: pa.Table, name: str) -> list[dict[str, Any]]:
    """Return the known least or greatest values of each file."""
    found: list[dict[str, Any]] = [{} for _ in range(actions.num_rows)]
    if name in actions.column_names:
        for field, column in zip(actions[name].type, actions[name].flatten(), strict=True):
            is_time = pa.types.is_timestamp(field.type)
            values = column.cast(pa.int64()) if is_time else column
            for known, value in zip(found, values.to_pylist(), strict=True):
                if value is not None:
                    known[field.name] = _EPOCH + timedelta(microseconds=value) if is_time else value
    return found
