"""What the tables were made of: which files of events, so that only what came since is looked at,
and which days these tell of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Final

from aioqless.contrib.lake.lake import Lake, Partition

_FILE: Final = "tables.json"
EVENTS: Final = "bronze/events"


class Progress:
    """For each day of events: what its files were when tables were last made of them, and the days
    that its runs touch.

    It is written after the tables, so a process that is killed between the two does its work again,
    to the same end."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._known: dict[Partition, tuple[str, list[date]]] = {}
        try:
            for each in json.loads((lake.root / _FILE).read_text("utf-8")):
                partition = Partition(EVENTS, each["namespace"], date.fromisoformat(each["date"]))
                self._known[partition] = (
                    each["files"],
                    [date.fromisoformat(day) for day in each["days"]],
                )
        except (OSError, ValueError, KeyError, TypeError):
            self._known = {}  # then all tables are made anew

    def changed(self) -> list[Partition]:
        """The days of events whose files aren't those that the tables were made of."""
        return [
            each
            for each in self._lake.partitions(EVENTS)
            if self._known.get(each, ("",))[0] != self.files(each)
        ]

    def touched(
        self, changed: Iterable[Partition], days: Mapping[Partition, Iterable[date]]
    ) -> set[tuple[str, date]]:
        """The namespaces and days of which tables have to be made: those that the events tell of
        now, or told of before."""
        found = {(each.namespace, day) for each in changed for day in days.get(each, ())}
        return found | {
            (each.namespace, day)
            for each in changed
            if each in self._known
            for day in self._known[each][1]
        }

    def telling_of(
        self, touched: set[tuple[str, date]], days: Mapping[Partition, Iterable[date]]
    ) -> list[Partition]:
        """The days of events that tell of any of these days."""
        known = {partition: told for partition, (_, told) in self._known.items()} | dict(days)
        return sorted(
            each
            for each, told in known.items()
            if any((each.namespace, day) in touched for day in told)
        )

    def done(
        self, files: Mapping[Partition, str], days: Mapping[Partition, Iterable[date]]
    ) -> None:
        """Note that the tables have been made of these files, which tell of these days."""
        for partition, read in files.items():
            self._known[partition] = (read, sorted(days.get(partition, ())))
        self._write()

    def rewritten(self, partition: Partition, before: str) -> None:
        """Note that a day has other files with the same events, if tables had been made of those it
        had `before`."""
        if partition in self._known and self._known[partition][0] == before:
            self._known[partition] = (self.files(partition), self._known[partition][1])
            self._write()

    def forget(self) -> None:
        """Have all tables made anew."""
        self._known = {}
        self._write()

    def files(self, partition: Partition) -> str:
        """What tells one state of a day's files from another."""
        stats = [(file.name, file.stat()) for file in self._lake.files(partition)]
        return hashlib.sha256(
            repr([(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]).encode()
        ).hexdigest()[:16]

    def _write(self) -> None:
        told = [
            {
                "namespace": each.namespace,
                "date": each.date.isoformat(),
                "files": files,
                "days": [day.isoformat() for day in days],
            }
            for each, (files, days) in sorted(self._known.items())
        ]
        staged = self._lake.root / f".{_FILE}"
        staged.write_text(json.dumps(told), "utf-8")
        staged.replace(self._lake.root / _FILE)
