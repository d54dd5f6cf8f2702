"""Tables of the lake and queries: lake tables, stats, sql, report, status."""

from __future__ import annotations

import csv
import itertools
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from aioqless.cli.exit_codes import REFUSED
from aioqless.cli.presentation.formatting import format_duration
from aioqless.cli.presentation.printing import escape_json, print_table
from aioqless.errors import AioqlessError

from .options import Conf, LakePlace, Master, OfNamespace, Since, Until
from .shared import (
    LAKE,
    command,
    open_lake,
    print_age,
    print_progress,
    refresh_tables,
    spark_opener,
)


@command
def tables(
    lake: LakePlace = LAKE,
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
    from aioqless.contrib.lake.period import ALL_DAYS, parse_period

    rebuilt = ALL_DAYS if rebuild else parse_period(since, until) if since else ()
    done = refresh_tables(open_lake(lake), open_session, rebuilt=rebuilt)
    print(
        f"{done.events:,} events: tables of {len(done.days):,} days"
        if done.days
        else "the tables are up to date"
    )


@command
def stats(
    since: Since = "7d",
    until: Until = "today",
    by: Annotated[
        str,
        typer.Option(
            help="queue, klass, tag, or several of them with commas; worker; queue,worker."
        ),
    ] = "queue",
    of: OfNamespace = None,
    as_json: Annotated[bool, typer.Option("--json", help="All numbers, histograms too.")] = False,
    lake: LakePlace = LAKE,
) -> None:
    """Show how long jobs waited and ran, and how they ended."""
    from aioqless.contrib.lake.period import parse_period
    from aioqless.contrib.lake.read.statistics import known, read_statistics

    period, grouping = parse_period(since, until), known(by)
    opened = open_lake(lake)
    found = read_statistics(opened, period, grouping, of)
    print_age(opened)
    if as_json:
        print(escape_json(json.dumps(found, indent=2, ensure_ascii=False)))
        return
    parts = [part for part in grouping.split(",") if part]
    times = ["p95", "most"]
    heads = ["runs", "done", "failed", "retried", "wait p50", *times, "run p50", *times]
    print_table([*parts, *heads], [_cells(row, parts) for row in found], empty="nothing ended")


@command
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
    lake: LakePlace = LAKE,
) -> None:
    """Query the tables, with your query or one by name.

    Without --csv or --json: a table for people of at most 1000 rows.
    """
    if (query is None) == (named is None):
        raise AioqlessError("give a query, or the name of one by --named")
    opened = open_lake(lake)
    from aioqless.contrib.lake.read.database import (
        count_statements,
        open_lake_database,
        read_named,
    )

    text = read_named(named) if query is None and named is not None else query or ""
    with open_lake_database(opened) as database:
        for each in values or ():
            database.execute(f"SET VARIABLE {_parse_value(each, text)}")
        if (number := count_statements(text)) != 1:
            raise ValueError(
                f"give one SQL statement (got {number}): only one answer can be printed"
            )
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
    print_age(opened)


def _parse_value(value: str, query: str) -> str:
    name, _, number = value.partition("=")
    try:
        given = f"{name} = {float(number)}" if name.isidentifier() else ""
    except ValueError:
        given = ""
    if not given:
        raise AioqlessError(
            f"--set {value!r} is not of the form name=number, such as price=0.00002"
        )
    if f"'{name}'" not in query:
        raise AioqlessError(f"--set {value}: the query has no getvariable('{name}')")
    return given


@command
def report(
    out: Annotated[Path, typer.Option("-o", "--out", help="The file to write.")] = Path(
        "report.html"
    ),
    since: Since = "7d",
    until: Until = "today",
    queue: Annotated[str | None, typer.Option(help="Only this queue; default: all.")] = None,
    of: OfNamespace = None,
    lake: LakePlace = LAKE,
) -> None:
    """Write a page of charts and tables, in one file that needs nothing else."""
    from aioqless.contrib.lake.period import parse_period
    from aioqless.contrib.lake.read.report import read_report, render

    period = parse_period(since, until)
    opened = open_lake(lake)
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
    print_age(opened)


@command
def status(
    max_lag: Annotated[
        float, typer.Option(help="Exit code 1 if the tables are behind by more, in seconds.", min=0)
    ] = 86_400,
    metrics: Annotated[
        Path | None,
        typer.Option(help="Also write metrics to this file, in Prometheus' text format."),
    ] = None,
    lake: LakePlace = LAKE,
) -> None:
    """Show how far the tables are behind the archived events."""
    from aioqless.contrib.lake.lake import Lake
    from aioqless.contrib.lake.read.freshness import format_metrics, read_freshness

    found = read_freshness(Lake(lake))
    now = datetime.now(UTC)
    if metrics:
        _write_metrics(metrics, format_metrics(found, now))
    if not found:
        print("the lake has no events yet")
    for each in found:
        last = format_duration((now - each.ended).total_seconds())
        behind = (
            f"{each.missing:,} are not in the tables, the oldest for "
            f"{format_duration(each.lag(now))}"
            if each.missing
            else "the tables are up to date"
        )
        print(f"{each.namespace}: {each.events:,} events, the last one {last} ago; {behind}")
    if any(each.lag(now) > max_lag for each in found):
        raise typer.Exit(REFUSED)


def _write_metrics(file: Path, text: str) -> None:
    """Replace a file, of which readers find the old text or the new one."""
    written = file.with_name(f"{file.name}.new")
    try:
        written.write_text(text, "utf-8")
        written.replace(file)
    except OSError as error:
        raise AioqlessError(f"--metrics {file} can't be written: {error.strerror}") from None


def _cells(row: dict[str, Any], parts: Sequence[str]) -> list[object]:
    again = sum(row[name] for name in ("retried", "released", "timed_out", "lost"))
    counted = [row["runs"], row["completed"] + row["advanced"], row["failed"], again]
    times = [
        format_duration(row[kind][name]) if kind in row else "-"
        for kind in ("wait", "run")
        for name in ("p50", "p95", "most")
    ]
    return [*(row[part] for part in parts), *counted, *times]
