"""A batch of the archive's stream as files of the lake: one for each day in it, whole or not at
all, the same when done again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from aioqless.contrib.lake.lake import Lake, Partition
from aioqless.contrib.lake.transaction import Changes

EVENTS: Final = "bronze/events"
UNREADABLE: Final = "quarantine/events"
MISSING: Final = "missing.parquet"

_DAY: Final = 86_400_000
SEVERAL: Final = "batches="
_OF: Final = re.compile(r"batch(?:=|es=(?P<first>\d{8,})-)(?P<last>\d{8,})(?:-part\d+)?\.parquet")
_ASIDE: Final = pa.schema(
    {"id": pa.string(), "ordinal": pa.int64(), "problem": pa.string(), "raw": pa.string()}
)


class Bronze:
    """What the archiver writes of a namespace, while it is the only one that does."""

    def __init__(self, changes: Changes, namespace: str) -> None:
        self._changes = changes
        self._lake = changes.lake
        self._namespace = namespace

    def write(self, rows: pa.Table, batch: int) -> tuple[int, int]:
        """Keep the rows of a batch. Returns how many events there were, and how many entries that
        can't be read."""
        rows = rows.sort_by("ordinal")
        fine = pc.is_null(rows["problem"])
        events, aside = (
            rows.filter(fine).drop_columns(["problem", "raw"]),
            rows.filter(pc.invert(fine)).select(_ASIDE.names),
        )
        for table, part in ((EVENTS, events), (UNREADABLE, aside)):
            for day, of_day in _days(part):
                self._keep(of_day, Partition(table, self._namespace, day), batch)
        return events.num_rows, aside.num_rows

    def set_aside(self, jids: list[str]) -> int:
        """Keep the jids that are listed as ended but have no job any more, each once. Returns how
        many are new."""
        known: set[str] = set()
        for partition in self._lake.partitions(UNREADABLE, self._namespace):
            for file in self._lake.files(partition):
                if file.name == MISSING:
                    known.update(
                        json.loads(raw)["jid"]
                        for raw in pq.read_table(file, columns=["raw"], partitioning=None)[
                            "raw"
                        ].to_pylist()
                    )
        new = sorted(set(jids) - known)
        if new:
            partition = Partition(UNREADABLE, self._namespace, datetime.now(UTC).date())
            before = self._lake.root / partition.folder / MISSING
            problem = "it is listed as ended, but its hash is gone: another client deleted it before it was swept"
            rows = {
                "id": [None] * len(new), "ordinal": [None] * len(new), "problem": [problem] * len(new),
                "raw": [json.dumps({"jid": jid}, ensure_ascii=False) for jid in new],
            }  # fmt: skip
            table = pa.table(rows, _ASIDE)
            if before.exists():
                table = pa.concat_tables(
                    [pq.read_table(before, schema=_ASIDE, partitioning=None), table]
                )
            self._changes.put(self._staged(table), partition, MISSING)
        return len(new)

    def _keep(self, rows: pa.Table, partition: Partition, batch: int) -> None:
        name = f"batch={batch:08d}.parquet"
        final = self._lake.root / partition.folder / name
        # A batch that was written and not committed comes again. What is there may have more:
        # entries can have been cut since.
        if covered(self._lake, partition, batch) or (
            final.exists() and pq.read_metadata(final).num_rows >= rows.num_rows
        ):
            return
        self._changes.put(self._staged(rows), partition, name)

    def _staged(self, rows: pa.Table) -> Path:
        staged = self._changes.folder()
        pq.write_table(rows, staged, compression="zstd")
        return staged


def written(lake: Lake, namespace: str) -> int | None:
    """The number of the latest batch that the lake has of a namespace; None if it has none."""
    numbers = [
        found[1]
        for table in (EVENTS, UNREADABLE)
        for partition in lake.partitions(table, namespace)
        for file in lake.files(partition)
        if (found := batches_of(file))
    ]
    return max(numbers, default=None)


def covered(lake: Lake, partition: Partition, batch: int) -> bool:
    """Whether a batch is part of a file that was made of several."""
    several = [batches_of(file) for file in lake.files(partition) if file.name.startswith(SEVERAL)]
    return any(of is not None and of[0] <= batch <= of[1] for of in several)


def batches_of(file: Path) -> tuple[int, int] | None:
    """The first and the last batch that a file has; None for one that was made of none."""
    found = _OF.fullmatch(file.name)
    return (int(found["first"] or found["last"]), int(found["last"])) if found else None


def merged_name(batches: list[tuple[int, int]], part: int) -> str:
    """What a part of a file is called that was made of others, by the first and last batch of
    each."""
    first, last = min(first for first, _ in batches), max(last for _, last in batches)
    return f"{SEVERAL}{first:08d}-{last:08d}-part{part}.parquet"


def _days(rows: pa.Table) -> Iterator[tuple[date, pa.Table]]:
    """The rows of each day, by the ids of their entries, which never go back."""
    ids = rows["id"].to_pylist()
    days = [int(id.partition("-")[0]) // _DAY for id in ids]
    start = 0
    for at in range(1, len(days) + 1):
        if at == len(days) or days[at] != days[start]:
            yield (
                datetime.fromtimestamp(days[start] * 86_400, UTC).date(),
                rows.slice(start, at - start),
            )
            start = at
