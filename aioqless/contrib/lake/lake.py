"""The lake: Delta tables below one folder or object store prefix."""

from __future__ import annotations

import os
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Final

from deltalake import DeltaTable, Field, Schema
from deltalake.exceptions import DeltaError, TableNotFoundError

from aioqless.contrib.lake.open_table import VERSION_PROPERTY, ConcurrentCommit, OpenTable
from aioqless.contrib.lake.schema import EVENTS, PARTITION_COLUMNS, TABLES, Table
from aioqless.contrib.lake.storage import LakeError, explain_failure, locate, remedy

# One table has a property that says with which declaration of all tables it was made.
_LAST: Final = max(TABLES)  # which a refresh commits last
_TABLES_PROPERTY: Final = "aioqless.tables"
_DECLARED: Final = str(zlib.crc32(repr(list(TABLES.values())).encode()))
_LAYERS: Final = {name.partition("/")[0] for name in TABLES}
_READER_VERSION: Final = 1  # of Delta's protocol; newer ones have features that pyarrow can't read
_FIELDS: Final = {
    name: {each.name: Field.from_arrow(each) for each in table.schema}
    for name, table in TABLES.items()
}


class Lake:
    """The Delta tables of a lake.

    Args:
        url: A local folder, or a URL of an object store: s3, gs, az, abfs.
        create: Make the lake if there is none.

    Raises:
        LakeError: There is no lake, or it can't be reached.
    """

    def __init__(self, url: str | os.PathLike[str], *, create: bool = False) -> None:
        self.storage = locate(url)
        self._opened: dict[str, OpenTable] = {}
        names = self._list_names(create)
        if "bronze" not in names or "_delta_log" not in self.storage.within(EVENTS).list_names():
            self._refuse_other_contents(names)
            if not create:
                raise LakeError(
                    f"there is no lake at {self.url}: `aioqless lake archive` makes one"
                )
        if create:
            self.upgrade()

    @property
    def url(self) -> str:
        """The absolute path or URL."""
        return self.storage.url

    def table(self, name: str) -> OpenTable:
        """Return a table, as of its latest version.

        All callers share it: it is opened once, and then updated.

        Raises:
            LakeError: There is no such table, or a newer program wrote the table.
        """
        if name not in TABLES:
            raise LakeError(f"{name!r} is no table of the lake; there are {', '.join(TABLES)}")
        if (found := self._latest(name)) is None:
            raise LakeError(f"{self.url} has no table {name}")
        return found

    def upgrade(self) -> dict[str, OpenTable]:
        """Create the tables and columns that are missing, and return all tables.

        Raises:
            LakeError: A table can't be used; nothing was changed.
        """
        latest = {name: self._latest(name) for name in TABLES}
        last = latest[_LAST]
        if None in latest.values() and last and last.find_property(_TABLES_PROPERTY):
            with suppress(ConcurrentCommit):  # a refresh has to fill the table that is made
                last.set_property(_TABLES_PROPERTY, "")
        found = {}
        for name, table in latest.items():
            self._opened[name] = found[name] = table or self._create(TABLES[name])
            while added := found[name].find_missing(_FIELDS[name]):
                with suppress(ConcurrentCommit):  # of another process that adds them
                    found[name].add_columns(added)
        return found

    def is_whole(self) -> bool:
        """Whether all tables are there, as the present program declares them."""
        layers = {name: self.storage.within(name).list_names() for name in _LAYERS}
        names = (name.partition("/") for name in TABLES)
        return all(table in layers[layer] for layer, _, table in names) and (
            self.table(_LAST).find_property(_TABLES_PROPERTY) == _DECLARED
        )

    def mark_whole(self) -> None:
        """Record that the present program has made all tables, if it isn't recorded."""
        last = self.table(_LAST)
        if last.find_property(_TABLES_PROPERTY) != _DECLARED:
            last.set_property(_TABLES_PROPERTY, _DECLARED)

    def _latest(self, name: str) -> OpenTable | None:
        """Return a table as of its latest version, if there is one."""
        if found := self._opened.get(name):
            found.update()
        elif found := self._open(name):
            self._opened[name] = found
        if found:
            self._check(found.delta, name)
        return found

    def _list_names(self, create: bool) -> list[str]:
        folder = Path(self.url)
        if self.storage.is_local and not folder.is_dir():
            if folder.exists():
                raise LakeError(f"{self.url} is a file; a lake is a folder")
            try:
                if create:
                    folder.mkdir(parents=True)
            except OSError as error:
                raise LakeError(f"{self.url} can't be created: {error.strerror}") from None
        return self.storage.list_names()

    def _refuse_other_contents(self, names: list[str]) -> None:
        strange = [name for name in names if name not in _LAYERS]
        if not strange and (first := EVENTS.partition("/")[0]) in names:
            # All that creating the first table can leave behind when it is killed.
            found = [self.storage.within(each).list_names() for each in (first, EVENTS)]
            strange = [
                name for each in found for name in each if name not in ("events", "_delta_log")
            ]
        if strange:
            raise LakeError(
                f"{self.url} is not empty and no lake: it has {strange[0]!r}. Name a folder of "
                "its own"
            )

    def _open(self, name: str) -> OpenTable | None:
        place = self.storage.within(name)
        if place.is_local and not Path(place.url, "_delta_log").is_dir():
            return None
        try:
            opened = DeltaTable(place.url, storage_options=dict(place.options))
        except TableNotFoundError:
            return None
        except (DeltaError, OSError) as error:
            raise explain_failure(place.url, error) from None
        return OpenTable(TABLES[name], place, opened)

    def _check(self, opened: DeltaTable, name: str) -> None:
        """Refuse a table that a newer version wrote, or another program changed too much."""
        if _version_of(opened) > TABLES[name].version:
            raise LakeError(
                f"a newer version of aioqless wrote the lake at {self.url} ({name} of version "
                f"{_version_of(opened)}), which this one can't read: update aioqless"
            )
        if (reader := opened.protocol().min_reader_version) > _READER_VERSION:
            raise LakeError(
                f"{name} of {self.url} needs reader version {reader} of Delta, such as for renamed "
                f"or dropped columns, which aioqless can't read: {remedy(name)}"
            )
        if (by := opened.metadata().partition_columns) != list(PARTITION_COLUMNS):
            raise LakeError(
                f"{name} of {self.url} is partitioned by {', '.join(by) or 'nothing'} instead of "
                f"{', '.join(PARTITION_COLUMNS)}: {remedy(name)}"
            )
        for field in opened.schema().fields:
            expected = _FIELDS[name].get(field.name)
            if expected is not None and field.type != expected.type:
                raise LakeError(
                    f"column {field.name} of {name} in {self.url} is {_type_name(field)} instead "
                    f"of {_type_name(expected)}: {remedy(name)}"
                )

    def _create(self, table: Table) -> OpenTable:
        place = self.storage.within(table.name)
        if place.is_local:
            Path(place.url).mkdir(parents=True, exist_ok=True)
        try:
            created = DeltaTable.create(
                place.url,
                Schema.from_arrow(table.schema),
                mode="ignore",
                partition_by=list(PARTITION_COLUMNS),
                name=table.name.replace("/", "_"),
                description=table.description,
                configuration=_properties_of(table),
                storage_options=dict(place.options),
                raise_if_key_not_exists=False,
            )
        except (DeltaError, OSError) as error:
            if (made := self._open(table.name)) is None:
                raise explain_failure(place.url, error) from None
            return made  # by another process meanwhile
        return OpenTable(table, place, created)


def _properties_of(table: Table) -> dict[str, str | None]:
    """Return the properties of a new table; Delta's log has no values of columns that name jobs."""
    statistics = "StatsColumns" if table.statistics else "NumIndexedCols"
    return {
        VERSION_PROPERTY: str(table.version),
        "delta.checkpointInterval": "10",  # later commits are read one by one
        f"delta.dataSkipping{statistics}": ",".join(table.statistics) or "0",
    }


def _version_of(table: DeltaTable) -> int:
    return int(table.metadata().configuration.get(VERSION_PROPERTY, "1"))


def _type_name(field: Field) -> str:
    return str(getattr(field.type, "type", field.type))
