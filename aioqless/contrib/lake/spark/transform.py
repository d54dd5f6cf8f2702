"""The frames of each table, queries in `sql/`, which Spark plans as a whole.

Runs are made of events; all other tables are made of the runs, whose columns are flat, and of some
columns of the events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from string import Template
from typing import TYPE_CHECKING, Any, Final

from aioqless.contrib.lake.open_table import AddedFile, DataFile, OpenTable, Partition
from aioqless.contrib.lake.schema import EVENTS, QUARANTINE, TABLES
from aioqless.contrib.lake.source import register
from aioqless.contrib.lake.spark.cells import SORTED, describe_groups
from aioqless.contrib.lake.spark.delta_source import read_files
from aioqless.contrib.lake.spark.delta_write import KEYS, Batches, write_files
from aioqless.contrib.lake.spark.session import name_jobs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RUNS: Final = "silver/runs"
MINUTE: Final = 60_000_000
# The tables that each file of `sql/` makes.
GOLD: Final = {
    "groups": ("gold/klasses", "gold/tags", "gold/workers"),
    "failures": ("gold/failures",),
    "throughput": ("gold/throughput",),
}
_LEAST_BYTES: Final = 2**20  # of files that a task reads
_MOST_BYTES: Final = 16 * 2**20
_FEW_TASKS: Final = 2
# Up to which one task makes a table: it takes less time than to start tasks and shuffle rows.
_FEW_ROWS: Final = 5_000
_FEW_FILES: Final = 16
_TASK_ROWS: Final = 500_000
_MANY_ROWS: Final = 100_000  # from which Spark looks at the sizes of shuffles
# By what the rows of a day are divided among tasks, if the day is large.
_DIVIDING: Final = {
    "groups": ("queue", "klass", "worker", "tag"),
    "failures": ("failure_group", "queue"),
    "throughput": ("queue", "start"),
}
_PARTITION: Final = ("namespace", "date")
# The columns that each file needs: of events, and of runs.
EVENT_COLUMNS: Final = {
    "runs": (
        "id", "jid", "klass", "queue", "tags", "priority", "job_set", "tenant", "runs", "run_dues",
        "run_versions", "swept", *_PARTITION,
    ),
    "groups": ("what", "queue", "klass", "worker", "tags", *_PARTITION),
    "failures": (
        "what", "queue", "klass", "worker", "jid", "ended", "failure_group", "message", *_PARTITION,
    ),
}  # fmt: skip
RUN_COLUMNS: Final = {
    "groups": ("queue", "klass", "worker", "tags", "how", "wait", "run", *_PARTITION),
    "failures": (
        "queue", "klass", "worker", "jid", "ended", "how", "failure_group", "message", *_PARTITION,
    ),
    "throughput": ("queue", "attempt", "put", "popped", "ended", "how", *_PARTITION),
}  # fmt: skip


def make_tables(
    spark: SparkSession, opened: Mapping[str, OpenTable], events: Sequence[DataFile]
) -> dict[str, list[AddedFile]]:
    """Have Spark compute the tables of some days; return the files, which no version has yet.

    Args:
        spark: The session.
        opened: The tables by name.
        events: The files of the events of these days, at least one.
    """
    rows, size = sum(each.rows for each in events), sum(each.size for each in events)
    tasks = set_up(spark, rows)
    if rows <= _FEW_ROWS and len(events) <= _FEW_FILES:
        tasks = 1
    task_bytes = max(_LEAST_BYTES, min(_MOST_BYTES, size // tasks + 1))

    def frame(table: str, files: Sequence[DataFile | AddedFile], columns: Sequence[str]) -> Any:
        found = read_files(spark, opened[table], files, columns, task_bytes)
        return found.coalesce(1) if tasks == 1 else found  # of which Spark shuffles no rows

    days = Counter[Partition]()
    for each in events:
        days[each.partition] += each.rows
    runs = make_runs(spark, frame(EVENTS, events, EVENT_COLUMNS["runs"]))
    name_jobs(spark, f"{RUNS} of {rows:,} events")
    made = write_files(runs, {RUNS: opened[RUNS]})
    files = made[RUNS]
    for name, tables in GOLD.items():
        found = make_gold(
            spark,
            name,
            frame(RUNS, files, RUN_COLUMNS[name]) if files else runs,
            frame(EVENTS, events, EVENT_COLUMNS[name]) if name in EVENT_COLUMNS else None,
            tasks,
            is_divided=max(days.values()) > _TASK_ROWS,
        )
        make = describe_groups if name == "groups" else iter
        name_jobs(spark, f"{', '.join(tables)} of {rows:,} events")
        made |= write_files(found, {table: opened[table] for table in tables}, make)
    return made


def make_entries(
    spark: SparkSession,
    options: Mapping[str, str],
    events: OpenTable,
    quarantine: OpenTable,
    quarantined: int,
) -> dict[str, list[AddedFile]]:
    """Have Spark write entries of the archive; return the files, which no version has yet.

    Args:
        spark: The session.
        options: The options of `load("archive")`.
        events: The table of valid entries.
        quarantine: The table of the others.
        quarantined: The number of an entry up to which rejected ones are left out.
    """
    register(spark)
    rows = (
        spark.read.format("aioqless")
        .options(**options)
        .load("archive")
        .where(f"problem IS NULL OR ordinal > {quarantined}")
        .selectExpr("*", f"if(problem IS NULL, '{EVENTS}', '{QUARANTINE}') AS _table")
        .sortWithinPartitions(*KEYS, "ordinal")
    )
    name_jobs(spark, f"entries of the archive to {EVENTS}, {QUARANTINE}")
    return write_files(rows, {EVENTS: events, QUARANTINE: quarantine})


def rewrite(
    spark: SparkSession,
    table: OpenTable,
    files: Sequence[DataFile],
    change: Callable[[Batches], Batches],
) -> list[AddedFile]:
    """Have tasks write the rows of files again, changed; return files that no version has yet.

    Args:
        spark: The session.
        table: The table.
        files: At least one.
        change: Changes rows, but neither their order nor by what they are sorted.
    """
    name = table.table.name
    rows = (
        read_files(spark, table, files, table.schema.names, _MOST_BYTES)
        .selectExpr("*", f"'{name}' AS _table")
        .sortWithinPartitions(*KEYS, *table.table.order)
    )
    return write_files(rows, {name: table}, change)[name]


def set_up(spark: SparkSession, rows: int) -> int:
    """Set up a session for this number of rows; return the number of tasks after a shuffle."""
    tasks = max(_FEW_TASKS, rows // _TASK_ROWS)
    spark.conf.set("spark.sql.shuffle.partitions", str(tasks))
    spark.conf.set("spark.sql.adaptive.enabled", str(rows >= _MANY_ROWS).lower())
    return tasks


def read_text(name: str, **values: object) -> str:
    """Return the SQL of a file in `sql/`, with values in the places that it leaves open."""
    text = resources.files(__package__).joinpath("sql", f"{name}.sql").read_text("utf-8")
    return Template(text).substitute(values) if values else text


def make_runs(spark: SparkSession, events: DataFrame) -> DataFrame:
    """Return the rows of `silver/runs`, ready to be written; each task has those of its events."""
    return (
        spark.sql(read_text("runs"), events=events)
        .selectExpr("*", f"'{RUNS}' AS _table")
        .sortWithinPartitions(*KEYS, *TABLES[RUNS].order)
    )


def make_gold(
    spark: SparkSession,
    name: str,
    runs: DataFrame,
    events: DataFrame | None,
    tasks: int,
    *,
    is_divided: bool = False,
    micros: int = MINUTE,
) -> DataFrame:
    """Return the rows of tables of gold; `describe_groups` makes those of groups.

    Args:
        spark: The session.
        name: A name of `GOLD`.
        runs: Runs, with the columns that the query needs.
        events: Their events, if it needs any.
        tasks: The number of tasks that write; with one, rows of one partition aren't shuffled.
        is_divided: Whether a day is so large that several tasks write it.
        micros: The length of a period of throughput, in microseconds.
    """
    keys = (*KEYS, *_DIVIDING[name]) if is_divided else KEYS
    frames: dict[str, Any] = {"runs": runs} if events is None else {"runs": runs, "events": events}
    if name == "groups":
        found = spark.sql(read_text(name), **frames)
        return _divide(found, tasks, keys).sortWithinPartitions(*SORTED)
    (table,) = GOLD[name]
    values = {"micros": micros} if name == "throughput" else {}
    found = spark.sql(read_text(name, **values), **frames).selectExpr("*", f"'{table}' AS _table")
    return _divide(found, tasks, keys).sortWithinPartitions(*KEYS, *TABLES[table].order)


def _divide(rows: DataFrame, tasks: int, keys: Sequence[str]) -> DataFrame:
    """Divide rows among tasks by the values of columns."""
    return rows.coalesce(1) if tasks == 1 else rows.repartition(tasks, *keys)
