"""Queries of the lake: lake tables, stats, sql, compact, report."""

from __future__ import annotations

import csv
import itertools
import json
import sys
from collections.abc import Sequence
from functools import partial
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
        bool, typer.Option("--rebuild", help="Make all tables again, of all events in the lake.")
    ] = False,
    since: Annotated[
        str | None, typer.Option(help="Make the tables again from this day on, such as 7d.")
    ] = None,
    until: Until = "today",
    master: Master = None,
    conf: Conf = None,
    trace: Trace = False,
) -> None:
    """Compute the tables of each day that has new events."""
    sessions = Sessions("tables", master, conf)
    with shorten_errors(trace):
        from aioqless.contrib.lake.statistics import ALL_DAYS, parse_period

        rebuilt = ALL_DAYS if rebuild else parse_period(since, until) if since else ()
    with open_lake(lake, trace) as opened:
        done = refresh_tables(opened, sessions, rebuilt=rebuilt)
        print(
            f"{done.events:,} events: tables of {len(done.days):,} days"
            if done.days
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
    trace: Trace = False,
) -> None:
    """Show how long jobs waited and ran, and how they ended."""
    with shorten_errors(trace):
        from aioqless.contrib.lake.statistics import known, parse_period, read_statistics

        period, grouping = parse_period(since, until), known(by)
    with open_lake(lake, trace, fresh) as opened:
        found = read_statistics(opened, period, grouping, of)
        if as_json:
            print(json.dumps(found, indent=2, ensure_ascii=False))
            return
        parts = [part for part in grouping.split(",") if part]
        times = ["p95", "most"]
        heads = ["runs", "done", "failed", "retried", "wait p50", *times, "run p50", *times]
        _print_table([*parts, *heads], [_cells(row, parts) for row in found])


@lake.command()
def sql(
    query: Annotated[
        str | None,
        typer.Argument(
            help="DuckDB's SQL, over events, runs, klasses, tags, workers, failures, throughput, "
            "backlog, worker_snapshots, and the views jobs and paths."
        ),
    ] = None,
    named: Annotated[
        str | None,
        typer.Option(
            help="backlog, cost_by_tag, job_sets, late, retry_storms, utilisation or workers."
        ),
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=NUMBER", help="What getvariable returns. Repeatable."),
    ] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Comma-separated values.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object a line.")] = False,
    lake: LakeUrl = LAKE,
    fresh: Fresh = True,
    trace: Trace = False,
) -> None:
    """Query the tables, with your query or one by name.

    Without --csv or --json: a table for people of at most 1000 rows.
    """
    if (query is None) == (named is None):
        raise AioqlessError("give a query, or the name of one by --named")
    with open_lake(lake, trace, fresh) as opened:
        from aioqless.contrib.lake.database import open_lake_database, read_named

        text = query or read_named(named or "")
        with open_lake_database(opened) as database:
            for each in values or ():
                database.execute(f"SET VARIABLE {_parse_value(each)}")
            answer = database.execute(text)
            names = [column[0] for column in answer.description or ()]
            rows = itertools.chain.from_iterable(iter(partial(answer.fetchmany, 1000), []))
            if as_json:
                for row in rows:
                    line = dict(zip(names, row, strict=True))
                    print(json.dumps(line, ensure_ascii=False, default=str))
            elif as_csv:
                csv.writer(sys.stdout, lineterminator="\n").writerows(
                    itertools.chain([names], rows)
                )
            else:
                shown = [
                    ["" if each is None else str(each) for each in row]
                    for row in itertools.islice(rows, 1001)
                ]
                _print_table(names, shown[:1000])
                if len(shown) > 1000:
                    print_progress("… and more: --csv or --json has all of it")


def _parse_value(text: str) -> str:
    name, _, number = text.partition("=")
    try:
        if name.isidentifier():
            return f"{name} = {float(number)}"
    except ValueError:
        pass
    raise AioqlessError(f"--set {text!r} is not of the form name=number, such as price=0.00002")


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
    with open_lake(lake, trace) as opened:
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
    trace: Trace = False,
) -> None:
    """Write a page of charts and tables, in one file that needs nothing else."""
    with shorten_errors(trace):
        from aioqless.contrib.lake.statistics import parse_period

        period = parse_period(since, until)
    with open_lake(lake, trace, fresh) as opened:
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
    from aioqless.contrib.lake.report.charts import format_duration

    again = sum(row[name] for name in ("retried", "released", "timed_out", "lost"))
    counted = [row["runs"], row["completed"] + row["advanced"], row["failed"], again]
    times = [
        format_duration(row[kind][name]) if kind in row else "-"
        for kind in ("wait", "run")
        for name in ("p50", "p95", "most")
    ]
    return [*(str(row[part]) for part in parts), *(f"{number:,}" for number in counted), *times]


def _print_table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    lines = [[plain(text) for text in line] for line in lines]
    columns = []
    for column in zip(heads, *lines, strict=True):
        width = max(map(len, column))
        is_text = any(text and not text[0].isdigit() and text != "-" for text in column[1:])
        columns.append([text.ljust(width) if is_text else text.rjust(width) for text in column])
    for line in zip(*columns, strict=True):
        print("  ".join(line).rstrip())
