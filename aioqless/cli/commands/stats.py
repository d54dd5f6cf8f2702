"""Statistics of a day: stats."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

import msgspec
import typer

from aioqless.cli.app import Act, Section, app
from aioqless.cli.completion import complete_queue
from aioqless.cli.options import Json
from aioqless.cli.presentation.formatting import (
    format_duration,
    format_relative_time,
    pluralize,
)
from aioqless.cli.presentation.histograms import draw_bar, label_bars, merge_counters
from aioqless.cli.presentation.printing import make_console, print_json, print_table, print_text
from aioqless.cli.presentation.suggestions import describe_unknown_queue, suggest
from aioqless.client import Client
from aioqless.client.queue_statistics import DayStats, Durations
from aioqless.errors import AioqlessError
from aioqless.validation import plain

MAX_BAR = 60  # columns
OptionalQueue = Annotated[
    str | None,
    typer.Argument(
        metavar="[QUEUE]",
        help="Default: a line for each; with --klass or --deploy a queue or a klass.",
        autocompletion=complete_queue,
    ),
]
Date = Annotated[str | None, typer.Option("--date", help="YYYY-MM-DD (UTC); default: today.")]


@app.command(
    rich_help_panel=Section.INSPECT, epilog="Example: aioqless stats mail --date 2030-01-31"
)
def stats(
    queue: OptionalQueue = None,
    date: Date = None,
    klass: Annotated[
        bool, typer.Option("--klass", help="By klass and queue, of the last hours.")
    ] = False,
    hours: Annotated[
        float, typer.Option(min=1 / 60, max=720, help="How many, with --klass or --deploy.")
    ] = 8,
    deploy: Annotated[
        bool, typer.Option("--deploy", help="By klass, before and after the latest deploy.")
    ] = False,
    json: Json = False,
) -> Act:
    """Show how long jobs of a day waited and ran, and how many failed or were retried."""
    day = _parse_day(date)
    if deploy or klass:
        if date is not None:
            raise typer.BadParameter("--date is of the statistics of a day: give --hours instead")
        show = _print_deploy if deploy else _print_klasses
        return partial(show, name=queue, hours=hours, json=json)

    async def act(client: Client) -> None:
        if queue is None:
            await _print_all(client, day, json)
            return
        counts = await client.queue(queue).stats(day)
        runs = await client.metrics.of_day(queue, day)
        if json:
            print_json({**_stats_fields(queue, day, counts), "runs": runs.summarize()})
        if problem := await describe_unknown_queue(client, queue):
            raise AioqlessError(problem)
        if json:
            return
        print_text(f"{plain(queue)} on {_format_day(day)} (UTC)", style="bold")
        failures = pluralize(counts.failures, "failure")
        print_text(f"{failures}, of which {counts.failed:,} unresolved; {_format_retries(counts)}")
        wait, run = runs.wait, runs.run
        _print_histogram(
            "Waiting time", counts.wait, (wait.p50, wait.p95, wait.p99), runs.wait_bars
        )
        _print_histogram("Run time", counts.run, (run.p50, run.p95, run.p99), runs.run_bars)

    return act


def _parse_day(date: str | None) -> float:
    """Return noon of the day.

    Raises:
        typer.BadParameter: if it isn't one.
    """
    if date is None:
        return time.time()
    try:
        return datetime.strptime(date, "%Y-%m-%d").replace(tzinfo=UTC, hour=12).timestamp()
    except ValueError:
        raise typer.BadParameter(
            f"{date!r} must be a day as YYYY-MM-DD", param_hint="--date"
        ) from None


def _format_day(day: float) -> str:
    return datetime.fromtimestamp(day, UTC).strftime("%Y-%m-%d")


def _stats_fields(queue: str, day: float, counts: DayStats) -> dict[str, object]:
    return {"queue": queue, "day": _format_day(day), **msgspec.structs.asdict(counts)}


def _format_retries(counts: DayStats) -> str:
    """Format the number of retries, with its parts if there are any."""
    lost = pluralize(counts.lost_locks, "lock lost", "locks lost")
    parts = f" ({counts.explicit_retries:,} explicit, {lost})"
    return pluralize(counts.retries, "retry", "retries") + (parts if counts.retries else "")


def _print_histogram(
    title: str,
    times: Durations,
    quantiles: Sequence[float | None],
    bars: Sequence[tuple[float, float, int]],
) -> None:
    """Print a histogram: of what workers have measured, if anything, else in whole seconds."""
    from rich.text import Text

    print_text(f"\n{title}", style="bold")
    if not times.count:
        print_text("  none", style="dim")
        return
    labeled = label_bars(bars or merge_counters(times.histogram))
    parts = [
        f"p{share} {format_duration(found)}"
        for share, found in zip((50, 95, 99), quantiles, strict=True)
        if found is not None
    ]
    mean, deviation = format_duration(times.mean), format_duration(times.std)
    print_text(
        f"  {pluralize(times.count, 'job')}  mean {mean}  std dev {deviation}  " + "  ".join(parts)
    )
    maximum = max((count for _, count in labeled), default=0)
    width = min(MAX_BAR, max(10, make_console().width - 30))
    for label, count in labeled:
        bar = draw_bar(count, maximum, width)
        print_text(Text.assemble(f"  {label:>10} ", (bar, "cyan"), (f" {count:,}", "dim")))


async def _print_all(client: Client, day: float, json: bool) -> None:
    """Print a line for each queue."""
    found = [
        (counts.name, await client.queue(counts.name).stats(day))
        for counts in await client.queues()
    ]
    if json:
        print_json([_stats_fields(name, day, counts) for name, counts in found])
        return
    rows = [
        (
            name,
            counts.wait.count,
            _format_mean(counts.wait),
            counts.run.count,
            _format_mean(counts.run),
            counts.failures,
            counts.retries,
        )
        for name, counts in found
    ]
    print_table(
        ["queue", "popped", "waited", "completed", "ran", "failures", "retries"],
        rows,
        empty="No queues yet: the first put makes one.",
    )


def _format_mean(times: Durations) -> str:
    return format_duration(times.mean) if times.count else "-"


async def _choose(client: Client, name: str | None) -> tuple[str | None, str | None]:
    """Return the queue or the klass of a name.

    Raises:
        AioqlessError: Nothing is known of it.
    """
    if name is None:
        return None, None
    if name in (known := await client.metrics.klass_names()):
        return None, name
    if problem := await describe_unknown_queue(client, name):
        raise AioqlessError(f"{problem}, and it is no klass{suggest(name, known)}")
    return name, None


async def _print_klasses(client: Client, name: str | None, hours: float, json: bool) -> None:
    """Print what has run by klass."""
    queue, klass = await _choose(client, name)
    found = await client.metrics.klasses(hours * 3600, queue=queue, klass=klass)
    if json:
        print_json(
            [{"klass": each.klass, "queue": each.queue, **each.total.summarize()} for each in found]
        )
        return
    print_table(
        ["klass", "queue", "runs", "failures", "per min", "p50", "p95", "p99", "wait p95"],
        [
            (
                *(each.klass, each.queue, each.total.runs, each.total.failures),
                f"{each.total.rate * 60:,.1f}",
                *map(_format_optional, (each.total.run.p50, each.total.run.p95)),
                *map(_format_optional, (each.total.run.p99, each.total.wait.p95)),
            )
            for each in found
        ],
        empty=f"Nothing has run in the last {format_duration(hours * 3600)}.",
    )


async def _print_deploy(client: Client, name: str | None, hours: float, json: bool) -> None:
    """Print what ran before and after the latest deploy."""
    mark = next((each for each in await client.metrics.marks() if each.deploy), None)
    if mark is None:
        raise AioqlessError(
            "there is no deploy mark yet: `aioqless worker --version-label` adds one"
        )
    queue, klass = await _choose(client, name)
    now = time.time()
    length = min(now - mark.at, hours * 3600)  # the same before and after
    found = [
        (each, each.between(at - length, at), each.between(at, at + length + each.step))
        for each in await client.metrics.klasses(
            min(now - mark.at + length, 30 * 86400), queue=queue, klass=klass
        )
        if (at := mark.at // each.step * each.step)  # its period counts as after it
    ]
    if json:
        klasses = [
            {
                "klass": each.klass,
                "queue": each.queue,
                "before": before.summarize(),
                "after": after.summarize(),
            }
            for each, before, after in found
        ]
        print_json({"at": mark.at, "version": mark.text, "klasses": klasses})
        return
    print_text(f"{plain(mark.text)}, {format_relative_time(mark.at)}", style="bold")
    print_table(
        ["klass", "queue", "runs", "failures", "p50", "p95", "wait p95"],
        [
            (
                each.klass,
                each.queue,
                f"{before.runs:,} → {after.runs:,}",
                f"{before.failure_rate:.1%} → {after.failure_rate:.1%}",
                *(
                    " → ".join(map(_format_optional, pair))
                    for pair in (
                        (before.run.p50, after.run.p50),
                        (before.run.p95, after.run.p95),
                        (before.wait.p95, after.wait.p95),
                    )
                ),
            )
            for each, before, after in found
        ],
        empty="Nothing has run.",
    )


def _format_optional(seconds: float | None) -> str:
    return "-" if seconds is None else format_duration(seconds)
