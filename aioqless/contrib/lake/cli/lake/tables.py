"""Queries of the lake: lake tables, stats, sql, compact, report."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from aioqless.errors import AioqlessError
from aioqless.validation import plain

from .shared import (
    LAKE,
    Conf,
    LakeUrl,
    Master,
    OneNamespace,
    Sessions,
    Trace,
    lake,
    open_lake,
    print_progress,
    refresh_tables,
    shorten_errors,
)

Fresh = Annotated[
    bool, typer.Option("--refresh/--no-refresh", help="Bring the tables up to date first.")
]
Since = Annotated[
    str,
    typer.Option(
        help="The first day: 2026-11-21, today, yesterday, or 7d for the last seven days. "
        "Days are UTC's."
    ),
]
Until = Annotated[str, typer.Option(help="The last day: 2026-11-21, today or yesterday.")]


@lake.command("tables")
def make_tables(
    lake: LakeUrl = LAKE,
    rebuild: Annotated[
        bool,
        typer.Option("--rebuild", help="Make all tables again, of all events in the lake."),
    ] = False,
    master: Master = None,
    conf: Conf = None,
    trace: Trace = False,
) -> None:
    """Bring the tables up to date with the events in the lake."""
    with open_lake(lake, trace, Sessions("tables", master, conf)) as (opened, sessions):
        done = refresh_tables(opened, sessions, rebuild=rebuild)
        print(
            f"{done.events:,} events: tables of {len(done.days):,} days"
            if done.events
            else "the tables are up to date"
        )


@lake.command()
def stats(
    since: Since = "7d",
    until: Until = "today",
    by: Annotated[
        str,
        typer.Option(
            help="queue, klass, tag, or several of them with commas; worker; queue,worker."
        ),
    ] = "queue",
    of: OneNamespace = None,
    as_json: Annotated[bool, typer.Option("--json", help="All numbers, histograms too.")] = False,
    lake: LakeUrl = LAKE,
    fresh: Fresh = True,
    master: Master = None,
    conf: Conf = None,
    trace: Trace = False,
) -> None:
    """Show how long jobs waited and ran, and how they ended."""
    with shorten_errors(trace):
        from aioqless.contrib.lake.statistics import parse_period, read_statistics
        from aioqless.contrib.lake.tables.groups import known

        period, grouping = parse_period(since, until), known(by)
    with open_lake(lake, trace, Sessions("stats", master, conf), fresh) as (opened, _):
        found = read_statistics(opened, period, grouping, of)
        if as_json:
            print(json.dumps(found, indent=2, ensure_ascii=False))
            return
        parts = [part for part in grouping.split(",") if part]
        heads = [
            *parts,
            "runs",
            "done",
            "failed",
            "retried",
            "wait p50",
            "p95",
            "most",
            "run p50",
            "p95",
            "most",
        ]
        _print_table(heads, [_cells(row, parts) for row in found])


@lake.command()
def sql(
    query: Annotated[
        str,
        typer.Argument(
            help="Spark's SQL, over events, runs, jobs, times, counts, failures, throughput, paths."
        ),
    ],
    as_csv: Annotated[bool, typer.Option("--csv", help="Comma-separated values.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object a line.")] = False,
    lake: LakeUrl = LAKE,
    fresh: Fresh = True,
    master: Master = None,
    conf: Conf = None,
    trace: Trace = False,
) -> None:
    """Query the tables. Without --csv or --json: a table for people of at most 1000 rows."""
    with open_lake(lake, trace, Sessions("sql", master, conf), fresh) as (opened, sessions):
        from aioqless.contrib.lake.lake_reader import name_views

        spark = sessions.open()
        name_views(spark, opened)
        answer = spark.sql(query)
        if as_json:
            from pyspark.sql import functions as F

            for (line,) in answer.select(
                F.to_json(F.struct("*"), {"ignoreNullFields": "false"})
            ).toLocalIterator():
                print(line)
        elif as_csv:
            writer = csv.writer(sys.stdout, lineterminator="\n")
            writer.writerow(answer.columns)
            writer.writerows(answer.toLocalIterator())
        else:
            rows = answer.limit(1001).collect()
            _print_table(
                answer.columns,
                [["" if value is None else str(value) for value in row] for row in rows[:1000]],
            )
            if len(rows) > 1000:
                print_progress("… and more: --csv or --json has all of it")


@lake.command()
def compact(
    lake: LakeUrl = LAKE,
    vacuum_hours: Annotated[
        int,
        typer.Option(
            help="Age in hours of the oldest version of a table that stays readable.", min=24
        ),
    ] = 168,
    trace: Trace = False,
) -> None:
    """Merge small files, and delete files that only old versions of the tables have."""
    with open_lake(lake, trace, Sessions("compact", None, None)) as (opened, _):
        from aioqless.contrib.lake.compaction import compact as merge

        print(f"{merge(opened, print_progress, vacuum_hours=vacuum_hours)} files less")


@lake.command()
def report(
    out: Annotated[Path, typer.Option("-o", "--out", help="The file to write.")] = Path(
        "report.html"
    ),
    since: Since = "7d",
    until: Until = "today",
    queue: Annotated[str | None, typer.Option(help="Only this queue; default: all.")] = None,
    of: OneNamespace = None,
    lake: LakeUrl = LAKE,
    fresh: Fresh = True,
    master: Master = None,
    conf: Conf = None,
    trace: Trace = False,
) -> None:
    """Write a page of charts and tables, in one file that needs nothing else."""
    with shorten_errors(trace):
        from aioqless.contrib.lake.statistics import parse_period

        period = parse_period(since, until)
    with open_lake(lake, trace, Sessions("report", master, conf), fresh) as (opened, _):
        from aioqless.contrib.lake.report import read_report, render

        print_progress("the report")
        numbers = read_report(opened, period, of, queue)
        if numbers is None:
            place = "".join(
                f" in {kind} {name}" for kind, name in (("queue", queue), ("namespace", of)) if name
            )
            raise AioqlessError(
                f"nothing ended{place} from {period.first} to {period.last}, "
                f"according to the lake at {opened.url}"
            )
        try:
            out.write_text(render(numbers), "utf-8")
        except OSError as error:
            raise AioqlessError(f"--out {out} can't be written: {error.strerror}") from None
        print(out)


def _cells(row: dict[str, Any], parts: Sequence[str]) -> list[str]:
    again = sum(row[name] for name in ("retried", "released", "timed_out", "lost"))
    counted = [row["runs"], row["completed"] + row["advanced"], row["failed"], again]
    times = [
        _format_seconds(row[kind][name]) if kind in row else "-"
        for kind in ("wait", "run")
        for name in ("p50", "p95", "most")
    ]
    return [*(str(row[part]) for part in parts), *(f"{number:,}" for number in counted), *times]


def _format_seconds(seconds: float) -> str:
    for width, unit in ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"), (0.001, "ms")):
        if seconds >= width:
            return f"{seconds / width:.3g} {unit}"
    return f"{seconds * 1e6:.0f} µs"


def _print_table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    lines = [[plain(text) for text in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(heads, *lines, strict=True)]
    for line in (heads, *lines):
        cells = [
            text.ljust(width) if _is_text(column, lines) else text.rjust(width)
            for column, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())


def _is_text(column: int, lines: Sequence[Sequence[str]]) -> bool:
    return any(
        line[column] and not line[column][0].isdigit() and line[column] != "-" for line in lines
    )
