"""Prints a job for people: state, failure, data, dependencies, history, next steps."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from aioqless.cli.presentation.formatting import (
    STYLES,
    format_duration,
    format_relative_time,
    format_time,
    pluralize,
    shorten,
)
from aioqless.cli.presentation.json_output import data_text, indent_json
from aioqless.cli.presentation.printing import print_text
from aioqless.client.job import JobRecord
from aioqless.client.job.state import HeldBack, explain_failure
from aioqless.validation import plain

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

MAX_DATA = 8_000  # characters of data on a terminal
MAX_RELATED = 10  # jobs of a list of dependencies


def print_job(job: JobRecord, states: Mapping[str, str]) -> None:
    """Print a job; see `render_job`."""
    for each in render_job(job, states, MAX_DATA if sys.stdout.isatty() else None):
        print_text(each)


def render_job(
    job: JobRecord, states: Mapping[str, str], max_data: int | None = MAX_DATA
) -> Iterator[RenderableType]:
    """Yield what is shown of a job, line by line.

    Args:
        job: the job.
        states: the states of its dependencies and dependents, as far as these exist.
        max_data: maximum number of characters of its data to show; None for all.
    """
    from rich.text import Text

    yield Text.assemble(
        (plain(job.jid), "bold"),
        "  ",
        plain(job.klass),
        "  ",
        (job.state, STYLES.get(job.state, "")),
    )
    for name, value in [*_place_facts(job), *_run_facts(job), *_limit_facts(job)]:
        yield Text.assemble((f"  {name:<12}", "dim"), value)
    yield from _render_failure(job)
    yield _title("Data")
    yield from _render_data(job, max_data)
    for title, jids, total in (
        ("Waits for", job.dependencies, job.details.dependencies_total),
        ("Awaited by", job.dependents, job.details.dependents_total),
    ):
        yield from _render_related(title, jids, total, states)
    yield _title("History")
    yield from _format_history(job)


def suggest_next_steps(job: JobRecord) -> str:
    """Return the commands that a user may want to run next."""
    jid = plain(job.jid)
    match job.state:
        case "failed":
            return (
                f"aioqless edit {jid}           change its data and retry it\n"
                f"aioqless retry {jid} --wait   retry it, and watch\n"
                f"aioqless cancel {jid}         delete it"
            )
        case "running" | "stalled":
            return f"aioqless tail --jid {jid}     watch it"
        case "complete":
            return ""
        case _:
            return (
                f"aioqless move {jid} QUEUE     move it to another queue\n"
                f"aioqless cancel {jid}         delete it"
            )


def _place_facts(job: JobRecord) -> Iterator[tuple[str, str]]:
    now = time.time()
    if job.queue:
        yield "queue", plain(job.queue)
    elif was := job.last_queue:
        yield "was in", plain(was)
    if job.worker and job.state in ("running", "stalled"):
        expires = (
            f"expires {format_relative_time(job.expires, now)}"
            if job.expires > now
            else "has expired"
        )
        yield "worker", f"{plain(job.worker)} · its lock {expires}"
    if job.last_progress:
        when = format_relative_time(job.last_progress.when, now)
        yield (
            "progress",
            f"{job.last_progress.share:.0%} {shorten(job.last_progress.message)} · {when}",
        )


def _run_facts(job: JobRecord) -> Iterator[tuple[str, str]]:
    if job.priority:
        yield "priority", f"{job.priority:g}"
    yield "retries", f"{max(0, job.remaining)} of {job.retries} left"
    if job.tags:
        yield "tags", " ".join(plain(tag) for tag in job.tags)
    if job.tracked:
        yield "tracked", "yes"
    if job.spawned_from:
        yield "made by", plain(job.spawned_from)


def _limit_facts(job: JobRecord) -> Iterator[tuple[str, str]]:
    if job.held_back:
        until = job.held_back.until
        what = "parked" if job.held_back.waits_for else "held back by"
        yield what, plain(job.held_back.reason)
        yield (
            "until",
            f"{_running_jobs(job.held_back)}{format_time(until)}, {format_relative_time(until)}",
        )
    if job.expiry:
        yield "expires unless started by", format_time(job.expiry)
    for name, value in job.context.items():
        yield "context", f"{plain(name)}={shorten(value)}"


def _running_jobs(held_back: HeldBack) -> str:
    if not held_back.running:
        return ""
    return f"one of these ends: {' '.join(map(plain, held_back.running))}; looked at again "


def _render_failure(job: JobRecord) -> Iterator[RenderableType]:
    from rich.padding import Padding
    from rich.text import Text

    failure = job.failure
    if failure is None or job.state == "complete":
        return
    failed = job.state == "failed"
    yield _title("Failed" if failed else "Failed before")
    by = f" · worker {plain(failure.worker)}" if failure.worker else ""
    head = f"  {plain(failure.group)} · {format_relative_time(failure.when)}{by}"
    yield Text(head, style="bold red" if failed else "yellow")
    yield from _indent(failure.traceback)
    if explanation := explain_failure(failure.traceback):
        yield Padding(Text(explanation, style="dim"), (0, 0, 0, 2))


def _title(text: str) -> Text:
    from rich.text import Text

    return Text(f"\n{text}", style="bold")


def _indent(text: str) -> Iterator[Text]:
    from rich.text import Text

    for line in plain(text, lines=True).rstrip("\n").split("\n"):
        yield Text(f"  {line}")


def _render_data(job: JobRecord, most: int | None) -> Iterator[Text]:
    from rich.text import Text

    text = indent_json(data_text(job))
    shown = text[:most]
    yield from _indent(shown)
    if len(shown) < len(text):
        more = f"  … and {len(text) - len(shown):,} more characters"
        yield Text(f"{more}: aioqless get {plain(job.jid)} --json | jq .data", style="dim")


def _render_related(
    title: str, jids: list[str], total: int, states: Mapping[str, str]
) -> Iterator[Text]:
    from rich.text import Text

    if not total:
        return
    yield _title(title)
    for jid in sorted(jids)[:MAX_RELATED]:
        state = states.get(jid, "gone")
        yield Text.assemble("  ", plain(jid), "  ", (state, STYLES.get(state, "dim")))
    if total > MAX_RELATED:
        yield Text(f"  … and {pluralize(total - MAX_RELATED, 'more', 'more')}", style="dim")


def _format_history(job: JobRecord) -> Iterator[Text]:
    from rich.text import Text

    earlier = job.details.events_total - len(job.events)
    if earlier > 0:
        yield Text(f"  … {pluralize(earlier, 'earlier event')}", style="dim")
    before: float | None = None
    for event in job.events:
        when = event["when"]
        passed = "" if before is None else f"+{format_duration(max(0, when - before))}"
        before = when
        what = plain(str(event["what"]))
        line = Text.assemble(
            f"  {format_time(when)}  ",
            (f"{passed:>12}  ", "dim"),
            (f"{what:<10}", STYLES.get(what, "bold")),
            " ",
        )
        yield line.append(shorten(_format_details(event), 160))


def _format_details(event: Mapping[str, object]) -> str:
    return "  ".join(
        f"{'queue' if name == 'q' else name} {value}"
        for name, value in event.items()
        if name not in ("when", "what") and value != ""
    )
