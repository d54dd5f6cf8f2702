"""Checks that a lake's tables agree with its events, and both with the statistics of Redis.

A check is a query in `sql/checks`, or in a folder of the user: each row that it returns is a
difference. Beside the tables of the lake they find `archived`, one row about the entries of the
namespace, and `refreshed`, the last event of each table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aioqless.client import Client
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.position import Position, erased_name, first_day, refreshed_name
from aioqless.contrib.lake.read.database import (
    NAMES,
    create_views,
    fetch,
    open_database,
    open_lake_database,
)
from aioqless.contrib.lake.schema import DERIVED, EVENTS, QUARANTINE
from aioqless.contrib.lake.storage import LakeError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_FEW: Final = 1e-6  # relative difference of two sums of the same numbers in another order
_SHOWN: Final = 1000  # rows of one check


@dataclass(frozen=True)
class Difference:
    """A row that a check found in a namespace, such as an expected number and the one found."""

    check: str
    namespace: str
    row: Mapping[str, Any]

    def __str__(self) -> str:
        texts = [f"{name} {_format(value)}" for name, value in self.row.items()]
        return f"{self.check} of {self.namespace}: {', '.join(texts)}"


def check(
    lake: Lake,
    namespace: str | None = None,
    progress: Callable[[str], None] = lambda _: None,
    folder: Path | None = None,
) -> list[Difference]:
    """Compare the tables with the events from which they were made.

    All events are read. What has been pruned, of the events or of a table, is left out. If jobs
    were erased, whose sums stay, gold may have more than the events.

    Args:
        lake: The lake.
        namespace: The namespace; all unless given.
        progress: Called with a line of text for each namespace.
        folder: A folder of more checks.

    Raises:
        LakeError: A check of the folder is no valid query.
    """
    texts = dict(_read_checks(folder))
    found: list[Difference] = []
    for name in sorted({each.namespace for each in lake.table(EVENTS).files(within=namespace)}):
        progress(f"checking {name}")
        with open_database() as database:
            _register_namespace(database, lake, name)
            for check, text in texts.items():
                found += _run_check(database, check, text, name)
    return found


async def check_redis(lake: Lake, client: Client, days: Sequence[date]) -> list[Difference]:
    """Compare the tables with the statistics that Redis keeps of the runs that completed.

    They agree if the archive has been on all day, and all of the stream is in the lake.
    """
    queues = [each.name for each in await client.queues()]
    found: list[Difference] = []
    with open_lake_database(lake, ["klasses"], namespace=client.namespace) as database:
        for day in days:
            rows = fetch(
                database,
                "SELECT queue, coalesce(sum(run.count), 0)::BIGINT AS count, "
                "coalesce(sum(run.count * run.mean) / sum(run.count), 0) AS mean "
                "FROM klasses WHERE date = $day GROUP BY queue",
                {"day": day},
            )
            of_day = {row["queue"]: row for row in rows}
            moment = datetime.combine(day, time(), UTC).timestamp()
            for queue in queues:
                theirs = (await client.queue(queue).stats(moment)).run
                ours = of_day.get(queue, {"count": 0, "mean": 0.0})
                for name, expected in (("count", theirs.count), ("mean", theirs.mean)):
                    if not math.isclose(expected, ours[name], rel_tol=_FEW, abs_tol=_FEW):
                        row = {"queue": queue, "date": day, name: ours[name], "in Redis": expected}
                        found.append(Difference("completed runs", client.namespace, row))
    return found


def _read_checks(folder: Path | None) -> Iterator[tuple[str, str]]:
    own = resources.files(__package__).joinpath("sql", "checks")
    files = sorted(own.iterdir(), key=lambda each: each.name)
    for file in (*files, *(sorted(folder.iterdir()) if folder else ())):
        if file.name.endswith(".sql"):
            yield file.name.removesuffix(".sql"), file.read_text("utf-8")


def _run_check(
    database: DuckDBPyConnection, check: str, text: str, namespace: str
) -> Iterator[Difference]:
    import duckdb

    try:
        rows = fetch(database, f"SELECT * FROM ({text.rstrip().rstrip(';')}\n) LIMIT {_SHOWN}")
    except duckdb.ProgrammingError as error:
        raise LakeError(f"the check {check} is no query that DuckDB knows: {error}") from None
    yield from (Difference(check, namespace, row) for row in rows)


def _register_namespace(database: DuckDBPyConnection, lake: Lake, namespace: str) -> None:
    """Make the rows of a namespace known that all tables have: of days that none has pruned."""
    opened = {name: lake.table(name) for name in NAMES.values()}
    events, quarantine = opened[EVENTS], opened[QUARANTINE]
    firsts = [first_day(each, namespace) or date.min for each in opened.values()]
    for name, table in NAMES.items():
        files = [each for each in opened[table].files(namespace) if each.date >= max(firsts)]
        database.register(name, opened[table].rows({each.partition for each in files}))
    create_views(database)
    database.execute(
        "CREATE TEMP TABLE archived AS "
        "SELECT $1 AS last, $2 AS lost, $3 AS erased, $4 AS is_pruned",
        [
            max(each.greatest["ordinal"] for each in events.files(namespace)),
            Position.of(events, namespace).lost,
            sum(each.transaction(erased_name(namespace)) or 0 for each in (events, quarantine)),
            max(firsts) > date.min,
        ],
    )
    database.execute("CREATE TEMP TABLE refreshed (name VARCHAR, ordinal BIGINT)")
    for name in DERIVED:
        ordinal = opened[name].transaction(refreshed_name(namespace)) or 0
        database.execute("INSERT INTO refreshed VALUES (?, ?)", [name, ordinal])


def _format(value: object) -> str:
    return f"{value:,.12g}" if isinstance(value, int | float) else str(value)
