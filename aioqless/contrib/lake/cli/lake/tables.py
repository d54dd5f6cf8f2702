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

from aioqless.cli.presentation.formatting import format_duration
from aioqless.cli.presentation.printing import escape_json, print_table
from aioqless.errors import AioqlessError

from .shared import (
    LAKE,
    Conf,
    LakeUrl,
    Master,
    OneNamespace,
    command,
    open_lake,
    print_progress,
    refresh_tables,
    spark_opener,
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


@command("tables")
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
) -> None:
    """Compute the tables of each day that has new events."""
    open_session = spark_opener("tables", master, conf)
    from aioqless.contrib.lake.statistics import ALL_DAYS, parse_period

    rebuilt = ALL_DAYS if rebuild else parse_period(since, until) if since else ()
    done = refresh_tables(open_lake(lake), open_session, rebuilt=rebuilt)
    print(
        f"{done.events:,} events: tables of {len(done.days):,} days"
        if done.days
        else "the tables are up to date"
    )


@command()
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
) -> None:
    """Show how long jobs waited and ran, and how they ended."""
    from aioqless.contrib.lake.statistics import known, parse_period, read_statistics

    period, grouping = parse_period(since, until), known(by)
    found = read_statistics(open_lake(lake, fresh), period, grouping, of)
    if as_json:
        print(escape_json(json.dumps(found, indent=2, ensure_ascii=False)))
        return
    parts = [part for part in grouping.split(",") if part]
    times = ["p95", "most"]
    heads = ["runs", "done", "failed", "retried", "wait p50", *times, "run p50", *times]
    print_table([*parts, *heads], [_cells(row, parts) for row in found], empty="nothing ended")


@command()
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
) -> None:
    """Query the tables, with your query or one by name.

    Without --csv or --json: a table for people of at most 1000 rows.
    """
    if (query is None) == (named is None):
        raise AioqlessError("give a query, or the name of one by --named")
    opened = open_lake(lake, fresh)
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
                print(escape_json(json.dumps(line, ensure_ascii=False, default=str)))
        elif as_csv:
            csv.writer(sys.stdout, lineterminator="\n").writerows(itertools.chain([names], rows))
        else:
            shown = list(itertools.islice(rows, 1001))
            print_table(names, shown[:1000], empty="no rows")
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


@command()
def compact(
    lake: LakeUrl = LAKE,
    vacuum_hours: Annotated[
        int,
        typer.Option(
            help="Age in hours of the oldest version of a table that stays readable.", min=24
        ),
    ] = 168,
) -> None:
    """Merge small files, and delete files that only old versions of the tables have."""
    from aioqless.contrib.lake.compaction import compact as merge

    print(f"{merge(open_lake(lake), print_progress, vacuum_hours=vacuum_hours)} files less")


@command()
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
) -> None:
    """Write a page of charts and tables, in one file that needs nothing else."""
    from aioqless.contrib.lake.report import read_report, render
    from aioqless.contrib.lake.statistics import parse_period

    period = parse_period(since, until)
    opened = open_lake(lake, fresh)
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


def _cells(row: dict[str, Any], parts: Sequence[str]) -> list[object]:
    again = sum(row[name] for name in ("retried", "released", "timed_out", "lost"))
    counted = [row["runs"], row["completed"] + row["advanced"], row["failed"], again]
    times = [
        format_duration(row[kind][name]) if kind in row else "-"
        for kind in ("wait", "run")
        for name in ("p50", "p95", "most")
    ]
    return [*(row[part] for part in parts), *counted, *times]
