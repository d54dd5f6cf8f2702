"""Erases jobs and tags from every table of a lake, and from the old versions of the tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from aioqless.contrib.lake.database import open_database
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.open_table import retry_conflicts
from aioqless.contrib.lake.position import erased_name
from aioqless.contrib.lake.refresh import DERIVED, position_name
from aioqless.contrib.lake.schema import EVENTS, SNAPSHOTS, TABLES, WORKER_SNAPSHOTS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_BATCH: Final = 50_000  # rows
# By a column of a table: whether a row goes, and what the column is without references to the
# erased. A rejected entry, `raw`, is JSON.
_GOES: Final = {
    "jid": "jid IN (SELECT unnest(getvariable('jids')))",
    "tag": "tag IN (SELECT unnest(getvariable('tags')))",
    "raw": "TRY_CAST(raw AS JSON)->>'jid' IN getvariable('jids') OR list_has_any("
    "TRY_CAST(TRY_CAST(TRY_CAST(raw AS JSON)->>'tags' AS JSON) AS VARCHAR[]), getvariable('tags'))",
}
_KEPT: Final = {
    "depends": "list_filter(depends, lambda each: each NOT IN getvariable('jids'))",
    "spawned_from": "CASE WHEN spawned_from NOT IN getvariable('jids') THEN spawned_from END",
    "tags": "list_filter(tags, lambda each: each NOT IN getvariable('tags'))",
    "samples": "list_filter(samples, lambda each: each.jid NOT IN getvariable('jids'))",
}


def erase(
    lake: Lake,
    jids: Collection[str],
    namespace: str | None = None,
    progress: Callable[[str], None] = lambda _: None,
    *,
    tags: Collection[str] = (),
) -> int:
    """Erase jobs: their events with data and messages, their rows, and references to them.

    Sums in gold name no job: they stay until their day is computed again. Tags are taken from the
    rows of their jobs, which stay, and sums by these tags are deleted. The number of erased entries
    is recorded. Afterwards no file of the lake has the jobs; earlier versions of the changed tables
    can't be read any more.

    Args:
        lake: The lake.
        jids: The jobs.
        namespace: The namespace of the jobs; all unless given.
        progress: Called with a line of text for each table.
        tags: The tags.

    Returns:
        The number of days of tables that had the jobs or tags.

    Raises:
        ConcurrentCommit: Other processes change the tables all the time.
    """
    erased = younger = 0
    with open_database() as database:
        for name, values in (("jids", jids), ("tags", tags)):
            texts = ", ".join("'" + each.replace("'", "''") + "'" for each in values)
            database.execute(f"SET VARIABLE {name} = [{texts}]::VARCHAR[]")
        for name in TABLES:
            days = 0
            if name not in (SNAPSHOTS, WORKER_SNAPSHOTS):  # these have no jobs
                days = retry_conflicts(partial(_erase_from, database, lake, name, namespace))
            if days:
                progress(f"{name}: {days:,} days")
            table = lake.table(name)
            table.vacuum(0)
            table.delete_orphans()
            younger += len(table.find_orphans())
            erased += days
    if younger:
        progress(
            f"{younger:,} files of killed or running processes may have the jobs, in no table: "
            "`aioqless lake compact` deletes them when they are a day old"
        )
    return erased


def _erase_from(database: DuckDBPyConnection, lake: Lake, name: str, namespace: str | None) -> int:
    """Replace the days of a table that have any of the erased; return their number."""
    table = lake.table(name)
    columns = table.schema.names
    goes = _join(f"({text})" for name, text in _GOES.items() if name in columns)
    kept = {name: text for name, text in _KEPT.items() if name in columns}
    changes = _join(f"{text} IS DISTINCT FROM {name}" for name, text in kept.items())
    entries = f"count(ordinal) FILTER ({goes})" if "ordinal" in columns else "0"
    database.register(
        "rows", table.rows({each.partition for each in table.files(within=namespace)})
    )
    found: Any = database.execute(
        f"SELECT namespace, date, {entries} FROM rows GROUP BY ALL "
        f"HAVING count(*) FILTER ({goes} OR {changes}) > 0"
    ).fetchall()
    erased = Counter[str]()
    for each, _, number in found:
        erased[each] += number
    transactions = {
        erased_name(each): (table.transaction(erased_name(each)) or 0) + number
        for each, number in erased.items()
        if number
    }
    if name in DERIVED:  # a refresh that has read the jobs already must not commit
        namespaces = {each.namespace for each in lake.table(EVENTS).files(within=namespace)}
        for each in map(position_name, namespaces):
            transactions[each] = table.transaction(each) or 0
    if found or transactions:
        partitions = {(each, day) for each, day, _ in found}
        database.register("rows", table.rows(partitions))
        replaced = ", ".join(f"{text} AS {name}" for name, text in kept.items())
        rows = database.sql(
            f"SELECT * {f'REPLACE ({replaced})' if kept else ''} FROM rows WHERE NOT ({goes})"
        )
        table.replace(rows.to_arrow_reader(_BATCH), partitions, transactions)
    return len(found)


def _join(conditions: Iterable[str]) -> str:
    """Return the condition that any of these is true; null is false."""
    return " OR ".join(f"coalesce({each}, false)" for each in conditions) or "false"
