"""The options that commands of the lake share, and what each means."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

AllAsJson = Annotated[bool, typer.Option("--json", help="All numbers, histograms too.")]
AnyVacuumHours = Annotated[
    int, typer.Option(help="Age in hours of the oldest readable version.", min=0, max=168)
]
Batch = Annotated[
    str | None,
    typer.Option(help="A name for this load: the same rows of another load are put again."),
]
Checks = Annotated[
    Path | None, typer.Option(help="A folder of more checks: queries that find differences.")
]
Conf = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark. Repeatable."),
]
Csv = Annotated[bool, typer.Option("--csv", help="Comma-separated values.")]
DelayOfJobs = Annotated[float | None, typer.Option(help="Seconds until they may run.")]
Entries = Annotated[
    int,
    typer.Option(
        help="Maximum number of entries of a batch, which is one commit.", min=1, max=10_000_000
    ),
]
ErasedJids = Annotated[list[str] | None, typer.Option(help="The id of a job. Repeatable.")]
ErasedTags = Annotated[list[str] | None, typer.Option(help="A tag of jobs. Repeatable.")]
Every = Annotated[
    float | None, typer.Option(help="Repeat at this interval, in seconds; default: once.", min=0.1)
]
Format = Annotated[
    str | None, typer.Option(help="csv, json or parquet; default: by the file's name.")
]
FromDay = Annotated[
    str | None, typer.Option(help="Make the tables again from this day on, such as 7d.")
]
GroupBy = Annotated[
    str,
    typer.Option(help="queue, klass, tag, or several of them with commas; worker; queue,worker."),
]
Json = Annotated[bool, typer.Option("--json", help="A JSON object a line.")]
KlassOfJobs = Annotated[
    str | None, typer.Option(help="Klass of the jobs, unless the rows have a column klass.")
]
LakePlace = Annotated[
    str,
    typer.Option(
        "--lake",
        envvar="AIOQLESS_LAKE",
        help="The lake: a folder, or a URL such as s3://bucket/prefix.",
    ),
]
Layer = Annotated[
    list[str] | None,
    typer.Option(help="bronze, quarantine, silver or gold; default: all. Repeatable."),
]
Master = Annotated[
    str | None,
    typer.Option(help="Where Spark runs, such as spark://host:7077 or sc://host; default: here."),
]
MaxDepth = Annotated[int | None, typer.Option(help="Wait while a queue has this many jobs.")]
MaxLag = Annotated[
    float, typer.Option(help="Exit code 1 if the tables are behind by more, in seconds.", min=0)
]
Metrics = Annotated[
    Path | None, typer.Option(help="Also write metrics to this file, in Prometheus' text format.")
]
Named = Annotated[
    str | None,
    typer.Option(
        help="backlog, cost_by_tag, job_sets, late, retry_storms, utilisation or workers."
    ),
]
OfNamespace = Annotated[
    str | None, typer.Option("--of", help="Only this namespace, with its partitions; default: all.")
]
OlderThan = Annotated[
    str | None,
    typer.Option("--older-than", help="Delete days before this one, or 90d: all but the last 90."),
]
PayloadsOlderThan = Annotated[
    str | None,
    typer.Option("--payloads-older-than", help="Delete only the data of jobs, before a day."),
]
PriorityOfJobs = Annotated[float | None, typer.Option(help="Lower runs sooner.")]
Query = Annotated[
    str | None,
    typer.Argument(
        help="DuckDB's SQL, over events, runs, klasses, tags, workers, failures, throughput, "
        "backlog, worker_snapshots, and the views jobs and paths."
    ),
]
QueueOfJobs = Annotated[
    str | None, typer.Option(help="Queue of the jobs, unless the rows have a column queue.")
]
Rebuild = Annotated[
    bool, typer.Option("--rebuild", help="Make all tables again, of all events in the lake.")
]
Refresh = Annotated[
    bool, typer.Option("--refresh/--no-refresh", help="Bring the tables up to date first.")
]
Rejects = Annotated[
    str | None, typer.Option(help="A folder for rows that can't be jobs, with the reasons.")
]
ReportFile = Annotated[Path, typer.Option("-o", "--out", help="The file to write.")]
ReportedQueue = Annotated[str | None, typer.Option(help="Only this queue; default: all.")]
RetriesOfJobs = Annotated[int | None, typer.Option(help="Maximum number of retries of each.")]
RowFile = Annotated[
    str, typer.Argument(help="A file or folder of CSV, JSON (an object a line) or Parquet.")
]
Schema = Annotated[
    str | None, typer.Option(help="The columns, as in SQL: 'url string, size long'.")
]
Since = Annotated[
    str,
    typer.Option(
        help="The first day: 2026-11-21, today, yesterday, or 7d for the last seven days. "
        "Days are UTC's."
    ),
]
Status = Annotated[
    bool,
    typer.Option("--status", help="Show the archive's state; exit code 1 if nothing reads it."),
]
TagsOfJobs = Annotated[str | None, typer.Option(help="Separated by commas.")]
TakeOver = Annotated[
    bool,
    typer.Option("--take-over", help="Archive though another lake did, or this is an older copy."),
]
Trace = Annotated[
    bool, typer.Option("--trace", help="Show the whole traceback of an error, including Java's.")
]
Until = Annotated[str, typer.Option(help="The last day: 2026-11-21, today or yesterday.")]
VacuumHours = Annotated[
    int,
    typer.Option(
        help="Age in hours of the oldest version of a table that stays readable.", min=24, max=168
    ),
]
Values = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=NUMBER", help="What getvariable returns. Repeatable."),
]
WithRedis = Annotated[
    bool, typer.Option("--redis", help="Compare with the statistics of Redis as well.")
]
