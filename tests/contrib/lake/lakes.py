"""The events of most tests, eight jobs of three namespaces and two days, and the rows of a lake."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from deltalake import DeltaTable

from aioqless.contrib.lake.database import open_lake_database
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.position import Position
from aioqless.contrib.lake.schema import EVENTS, TABLES
from tests.contrib.lake.literal import Row, event, events, rows, run

DAY = 86_400
TOMORROW = date(2026, 11, 22)
SECRET = "<script>alert('a job')</script>"

EARLY = [
    event("a", run(0, 1, 2, "fail", failure_group="g", message=SECRET), id="1-0"),
    event("b", run(0, 5, 9), id="2-0", tags=["x"], klass="Send", job_set="import-1", tenant="t"),
    event("other", run(0, 5, 9), id="1-0", namespace="{billing}"),
    event(
        "never",
        id="2-0",
        namespace="{billing}",
        what="fail",
        failure_group="dependency",
        ended=DAY + 5,
    ),  # on a day when nothing ran
    event("gone", id="1-0", namespace="cancelled"),
]
LATE = [
    event(
        "a", run(DAY - 60, DAY + 1, DAY + 2), id="3-0", date=TOMORROW
    ),  # worked in the end: it waited over midnight
    event(
        "c", run(20, 30, 40), id="4-0", date=TOMORROW, swept=True, tags=["x"]
    ),  # reported a day late
    event("d", run(DAY + 5, DAY + 6, DAY + 7), id="5-0", date=TOMORROW, depends=["a", "b"]),
    event(
        "e",
        run(DAY + 5, DAY + 6, DAY + 8, "fail", failure_group="mail-SMTPError", message=SECRET),
        id="6-0",
        date=TOMORROW,
    ),
]


def random_events(chance: random.Random, number: int) -> list[dict[str, Any]]:
    """Events of all kinds, in several days, queues and namespaces, some of the same job."""
    made = []
    for n in range(number):
        start = chance.uniform(0, 2 * DAY)
        attempts = []
        for how in [
            *chance.choices(["retried", "lost", "released", "timed-out"], k=chance.randrange(3)),
            chance.choice(["complete", "advance", "fail", "fail", "move"]),
        ]:
            popped = start + chance.choice([0, 0.001, 7, 90, DAY])
            ended = popped + chance.choice([0.000001, 1, 61, 4000])
            group = {"failure_group": chance.choice("gh")} if how in ("fail", "retried") else {}
            put = chance.choice([None, start, start])
            attempts.append(run(put, popped, ended, how, message=f"m{n}", **group))
            start = ended
        made.append(
            event(
                f"j{n % (number // 2)}",
                *attempts,
                id=f"{1000 + n}-0",
                queue=chance.choice(["mail", "post"]),
                klass=chance.choice(["Greet", "Send"]),
                namespace=chance.choice(["ql", "{other}"]),
                tags=chance.choice([[], ["x"], ["y", "x", "x"], [""]]),
                depends=chance.choice([[], ["j1"], ["j2", "j1"]]),
                spawned_from=chance.choice([None, "r1", "r2"]),
                date=chance.choice([date(2026, 11, 21), TOMORROW]),
            )
        )
    return made


def archive(lake: Lake, *given: Mapping[str, Any], skipped: int = 0) -> None:
    """Put events into the lake as one batch of the archiver's, after a number of entries that
    were rejected."""
    table = lake.table(EVENTS)
    number = Counter({each.namespace: 0 for each in table.all_files})
    for file in table.all_files:
        number[file.namespace] = max(number[file.namespace], file.greatest["ordinal"])
    number.update(dict.fromkeys({row["namespace"] for row in given}, skipped))
    numbered = []
    for row in given:
        number[row["namespace"]] += 1
        numbered.append({**row, "ordinal": number[row["namespace"]]})
    ends = [Position(ordinal=last).transactions(name) for name, last in number.items()]
    table.append(events(*numbered).to_batches(), {k: v for each in ends for k, v in each.items()})


def raw(lake: Lake, table: str) -> list[Row]:
    """The rows of a table as any reader of Delta finds them."""
    place = lake.storage.within(table)
    opened = DeltaTable(place.url, storage_options=dict(place.options))
    return rows(opened.to_pyarrow_table())


def view(lake: Lake, name: str) -> list[Row]:
    """The rows of a view such as `jobs`."""
    with open_lake_database(lake, [name]) as database:
        return rows(database.execute(f"FROM {name}").to_arrow_table())


def contents(lake: Lake) -> dict[str, list[str]]:
    """Every row of every derived table; not how they are spread over files. Numbers without their
    last digits, which depend on the order of sums."""
    made = [name for name in TABLES if name.startswith(("silver", "gold"))]
    return {name: comparable(raw(lake, name)) for name in made}


def comparable(found: list[Row]) -> list[str]:
    """Rows in a fixed order, to be compared."""
    return sorted(repr(_plain(row)) for row in found)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return sorted((key, _plain(each)) for key, each in value.items())
    if isinstance(value, list):
        plain = [_plain(each) for each in value]
        return sorted(plain) if all(isinstance(each, str) for each in plain) else plain
    return value


def files(lake: Lake) -> set[str]:
    """The files of the derived tables."""
    return {
        f"{name}/{each.path}"
        for name in TABLES
        if name.startswith(("silver", "gold"))
        for each in lake.table(name).all_files
    }


def copied(lake: Lake, folder: Path) -> Lake:
    """The same lake in another folder, to be changed."""
    return Lake(shutil.copytree(lake.url, folder))


def texts(lake: Lake) -> Iterator[str]:
    """Yield the contents of every file of a lake, Parquet files decompressed."""
    for path in Path(lake.url).rglob("*"):
        if path.suffix == ".parquet" and "_delta_log" not in path.parts:
            yield repr(pq.ParquetFile(path).read().to_pylist())
        elif path.is_file():
            yield path.read_bytes().decode("utf-8", "replace")
