"""What a day was like: stats."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Annotated

import msgspec
import typer

from aioqless.cli.app import Json, Namespace, Url, app, run
from aioqless.cli.presentation.completion import queue_names
from aioqless.cli.presentation.formatting import many, plain, span
from aioqless.cli.presentation.histograms import bar, gathered, quantile
from aioqless.cli.presentation.printing import console, say, show, table
from aioqless.cli.presentation.suggestions import unheard_of
from aioqless.client import Client
from aioqless.client.results import DayStats, Durations
from aioqless.errors import AioqlessError

LONGEST = 60  # columns of a bar
Queue = Annotated[
    str | None,
    typer.Argument(metavar="[QUEUE]", help="Default: a line for each.", autocompletion=queue_names),
]
Date = Annotated[
    str | None, typer.Option("--date", help="YYYY-MM-DD, a day of UTC; default: today.")
]


@app.command(epilog="Example: aioqless stats mail --date 2030-01-31")
def stats(
    queue: Queue = None,
    date: Date = None,
    json: Json = False,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Show how long jobs of a queue waited and ran on a day, how many failed or were retried."""
    day = _day(date)

    async def act(client: Client) -> None:
        if queue is None:
            await _all(client, day, json)
            return
        told = await client.queue(queue).stats(day)
        if json:
            show({"queue": queue, "day": _name(day), **msgspec.structs.asdict(told)})
        if unheard := await unheard_of(client, queue):
            raise AioqlessError(unheard)
        if json:
            return
        say(f"{plain(queue)} on {_name(day)} (UTC)", style="bold")
        say(
            f"{many(told.failures, 'failure')}, of which {told.failed:,} are failed still; {_retries(told)}"
        )
        for kind, title in (("wait", "Waited before they ran"), ("run", "Ran")):
            _draw(title, getattr(told, kind))

    run(url, namespace, act)


def _day(date: str | None) -> float:
    """Noon of the day. Raises typer.BadParameter."""
    if date is None:
        return time.time()
    try:
        return datetime.strptime(date, "%Y-%m-%d").replace(tzinfo=UTC, hour=12).timestamp()
    except ValueError:
        raise typer.BadParameter(
            f"{date!r} must be a day as YYYY-MM-DD", param_hint="--date"
        ) from None


def _name(day: float) -> str:
    return datetime.fromtimestamp(day, UTC).strftime("%Y-%m-%d")


def _retries(told: DayStats) -> str:
    """The number of retries, with its parts when there are any."""
    parts = (
        f" ({told.explicit_retries:,} explicit, {many(told.lost_locks, 'lock lost', 'locks lost')})"
    )
    return many(told.retries, "retry", "retries") + (parts if told.retries else "")


def _draw(title: str, told: Durations) -> None:
    from rich.text import Text

    say(f"\n{title}", style="bold")
    bars = gathered(told.histogram, told.milliseconds)
    if not told.count:
        say("  none", style="dim")
        return
    below = {
        share: quantile(told.histogram, share / 100, told.milliseconds)
        for share in (50, 95, 99)
        if bars
    }
    quantiles = "  ".join(f"p{share} < {span(seconds)}" for share, seconds in below.items())
    say(
        f"  {many(told.count, 'job')}  mean {span(told.mean)}  deviation {span(told.std)}  {quantiles}"
    )
    most = max((count for _, count in bars), default=0)
    width = min(LONGEST, max(10, console().width - 30))
    for label, count in bars:
        say(
            Text.assemble(
                f"  {label:>10} ", (bar(count, most, width), "cyan"), (f" {count:,}", "dim")
            )
        )


async def _all(client: Client, day: float, json: bool) -> None:
    """A line for each queue, of 1,000 at most."""
    told = [
        (counts.name, await client.queue(counts.name).stats(day))
        for counts in await client.queues()
    ]
    if json:
        show(
            [
                {"queue": name, "day": _name(day), **msgspec.structs.asdict(each)}
                for name, each in told
            ]
        )
        return
    columns = ["queue", "popped", "waited", "completed", "ran", "failures", "retries"]
    rows = [
        (
            name,
            each.wait.count,
            _mean(each.wait),
            each.run.count,
            _mean(each.run),
            each.failures,
            each.retries,
        )
        for name, each in told
    ]
    table(columns, rows, empty="No queues yet: the first put makes one.")


def _mean(told: Durations) -> str:
    return f"{span(told.mean)}" if told.count else "-"
