"""Where the lake keeps what.

    lake.json                   the version of each table
    <table>/namespace=…/date=…  a partition: Parquet files
    staging/<work>/…            what is being written; never read
    checkpoint/<namespace>      how far the archiver is
    locks/<work>                one process at a time does each kind of work

The lake is a folder of a file system that all executors see. `transaction.py` alone changes what is in
it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from aioqless.contrib.lake.schema import TABLES
from aioqless.errors import AioqlessError

FORMAT: Final = 1
_ABOUT: Final = "lake.json"
_PLAIN: Final = (
    " !$&()+,;@~}`|<>"  # what Spark leaves as it is in a folder's name, beside letters and digits
)


class LakeError(AioqlessError):
    """The lake isn't there, is of another version, or is in use."""


@dataclass(frozen=True, order=True)
class Partition:
    """A day of a namespace in a table; the day is UTC's."""

    table: str
    namespace: str
    date: date

    @classmethod
    def of(cls, table: str, folder: Path) -> Partition:
        """The partition that a folder `…/namespace=…/date=…` has."""
        namespace, day = (unquote(each.name.partition("=")[2]) for each in (folder.parent, folder))
        return cls(table, namespace, date.fromisoformat(day))

    @property
    def folder(self) -> str:
        """Where it is, from the lake's root."""
        return f"{self.table}/namespace={named(self.namespace)}/date={self.date.isoformat()}"


class Lake:
    """A lake at `root`. Raises LakeError if there is none, unless it is to be made, and if a newer
    version of the package wrote it."""

    def __init__(self, root: str | os.PathLike[str], *, create: bool = False) -> None:
        self.root = Path(root).absolute()
        if not (self.root / _ABOUT).exists():
            if not create:
                raise LakeError(
                    f"there is no lake at {self.root}: `aioqless pipeline archive` begins one"
                )
            self._begin()
        self._versions = self._read()

    def path(self, table: str) -> Path:
        """The folder of a table, such as `bronze/events`; it may not be there yet."""
        if table not in TABLES:
            raise LakeError(f"{table!r} is no table of the lake; there are {', '.join(TABLES)}")
        return self.root / table

    def checkpoint(self, namespace: str) -> Path:
        """Where the archiver of a namespace keeps how far it is."""
        return self.root / "checkpoint" / named(namespace)

    def partitions(self, table: str, namespace: str | None = None) -> list[Partition]:
        """The partitions that are there, of all namespaces or of one, by namespace and day."""
        folders = (
            each
            for each in self.path(table).glob("namespace=*/date=*")
            if any(each.glob("*.parquet"))
        )
        return sorted(
            each
            for each in (Partition.of(table, folder) for folder in folders)
            if namespace in (None, each.namespace)
        )

    def files(self, partition: Partition) -> list[Path]:
        """The Parquet files of a partition, by name."""
        return sorted((self.root / partition.folder).glob("*.parquet"))

    def outdated(self) -> list[str]:
        """The tables whose version has been raised since they were written."""
        return [
            name
            for name, table in TABLES.items()
            if self._versions.get(name, table.version) < table.version
        ]

    def updated(self, *tables: str) -> None:
        """Note that these tables are of the present version now."""
        self._versions |= {name: TABLES[name].version for name in tables}
        self._note()

    def _begin(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        if strange := sorted(each.name for each in self.root.iterdir()):
            raise LakeError(
                f"{self.root} is no lake, and not empty: it has {strange[0]!r}. Name a folder of its own"
            )
        self._versions = {name: table.version for name, table in TABLES.items()}
        self._note()

    def _note(self) -> None:
        file = self.root / f".{_ABOUT}.{os.getpid()}"
        file.write_text(
            json.dumps({"format": FORMAT, "tables": self._versions}, indent=2) + "\n", "utf-8"
        )
        file.replace(self.root / _ABOUT)

    def _read(self) -> dict[str, int]:
        about = self.root / _ABOUT
        try:
            read = json.loads(about.read_text("utf-8"))
            form, versions = (
                int(read["format"]),
                {str(name): int(version) for name, version in read["tables"].items()},
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise LakeError(f"{about} can't be read: {error!r}") from None
        newer = [
            f"{name} {version}"
            for name, version in versions.items()
            if name in TABLES and version > TABLES[name].version
        ]
        if form > FORMAT or newer:
            what = f"format {form}" if form > FORMAT else newer[0]
            raise LakeError(
                f"a newer aioqless wrote the lake at {self.root} ({what}): this one can't read it, update it"
            )
        return versions


def named(text: str) -> str:
    """A name that may have any characters, as one of a folder: the same that Spark gives it."""
    return quote(text, safe=_PLAIN)
