"""A job as a person wants to see it: where it is, what went wrong, its data, whom it waits for, its
history, what to do next."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from aioqless.cli.presentation.formatting import STYLES, ago, brief, clock, many, plain, span
from aioqless.cli.presentation.json_output import text_of
from aioqless.cli.presentation.printing import say
from aioqless.client.job import Job
from aioqless.client.job.record import HeldBack, meaning

if TYPE_CHECKING:
    from rich.text import Text

READABLE = 8_000  # characters of data on a terminal
MOST = 10  # jobs of a list of dependencies


def portray(job: Job, states: Mapping[str, str]) -> None:
    """Print it. `states` are those of the jobs that it waits for and that wait for it, as far as
    they exist."""
    from rich.padding import Padding
    from rich.text import Text

    state = str(job.state)
    head = Text.assemble(
        (plain(job.jid), "bold"), "  ", plain(job.klass), "  ", (state, STYLES.get(state, ""))
    )
    say(head)
    for name, value in _facts(job):
        say(Text.assemble((f"  {name:<12}", "dim"), value))
    if job.failure and state != "complete":
        failure = job.failure
        _title("Failed" if state == "failed" else "Failed before")
        by = f" · worker {plain(failure.worker)}" if failure.worker else ""
        say(
            Text(
                f"  {plain(failure.group)} · {ago(failure.when)}{by}",
                style="bold red" if state == "failed" else "yellow",
            )
        )
        _indented(failure.message)
        if means := meaning(failure.message):
            say(Padding(means, (0, 0, 0, 2)), style="dim")
    _title("Data")
    _data(job)
    _related("Waits for", job.dependencies, job.whole.dependencies_total, states)
    _related("Awaited by", job.dependents, job.whole.dependents_total, states)
    _title("History")
    for line in _timeline(job):
        say(line)


def next_steps(job: Job) -> str:
    """What one may want to do with it now."""
    jid = plain(job.jid)
    match str(job.state):
        case "failed":
            return (
                f"aioqless edit {jid}           change its data and run it again\n"
                f"aioqless retry {jid} --wait   run it again, and watch\naioqless cancel {jid}         delete it"
            )
        case "running" | "stalled":
            return f"aioqless tail --jid {jid}     watch it"
        case "complete":
            return ""
        case _:
            return f"aioqless move {jid} QUEUE     put it elsewhere\naioqless cancel {jid}         delete it"


def _facts(job: Job) -> Iterator[tuple[str, Any]]:
    now = time.time()
    if job.queue:
        yield "queue", plain(job.queue)
    elif was := job.last_queue:
        yield "was in", plain(was)
    if job.worker and job.state in ("running", "stalled"):
        yield (
            "worker",
            f"{plain(job.worker)} · its lock "
            + (f"expires {ago(job.expires, now)}" if job.expires > now else "has expired"),
        )
    if job.progressed:
        yield (
            "progress",
            f"{job.progressed.share:.0%} {brief(job.progressed.message)} · {ago(job.progressed.when, now)}",
        )
    if job.priority:
        yield "priority", f"{job.priority:g}"
    yield "retries", f"{max(0, job.remaining)} of {job.retries} left"
    if job.tags:
        yield "tags", " ".join(plain(tag) for tag in job.tags)
    if job.tracked:
        yield "tracked", "yes"
    if job.spawned_from:
        yield "made by", plain(job.spawned_from)
    if job.held_back:
        yield "held back by", plain(job.held_back.reason)
        yield (
            "until",
            f"{_ends(job.held_back)}{clock(job.held_back.until)}, {ago(job.held_back.until, now)}",
        )
    if job.start_by:
        yield "start by", clock(job.start_by)
    for name, value in job.context.items():
        yield "context", f"{plain(name)}={brief(value)}"


def _ends(held_back: HeldBack) -> str:
    return (
        f"one of these ends: {' '.join(map(plain, held_back.running))}; looked at again "
        if held_back.running
        else ""
    )


def _title(text: str) -> None:
    say(f"\n{text}", style="bold")


def _indented(text: str) -> None:
    for line in plain(text, lines=True).rstrip("\n").split("\n"):
        say(f"  {line}")


def _data(job: Job) -> None:
    """As much of it as a person wants to see who looks at a terminal; all of it elsewhere."""
    text = _pretty(text_of(job))
    shown = text[:READABLE] if sys.stdout.isatty() else text
    _indented(shown)
    if len(shown) < len(text):
        say(
            f"  … and {len(text) - len(shown):,} more characters: aioqless get {plain(job.jid)} --json | jq .data",
            style="dim",
        )


def _pretty(text: str) -> str:
    """JSON by lines; numbers stay as they are written."""
    try:
        return msgspec.json.format(text.encode(), indent=2).decode()
    except (msgspec.DecodeError, UnicodeError):
        return text


def _related(title: str, jids: list[str], total: int, states: Mapping[str, str]) -> None:
    from rich.text import Text

    if not total:
        return
    _title(title)
    for jid in sorted(jids)[:MOST]:
        state = states.get(jid, "gone")
        say(Text.assemble("  ", plain(jid), "  ", (state, STYLES.get(state, "dim"))))
    if total > MOST:
        say(f"  … and {many(total - MOST, 'more', 'more')}", style="dim")


def _timeline(job: Job) -> Iterator[Text]:
    from rich.text import Text

    left_out = job.whole.events_total - len(job.events)
    if left_out > 0:
        yield Text(f"  … {many(left_out, 'earlier event')}", style="dim")
    before: float | None = None
    for event in job.events:
        when = event["when"]
        passed = "" if before is None else f"+{span(max(0, when - before))}"
        before = when
        what = plain(str(event["what"]))
        line = Text.assemble(
            f"  {clock(when)}  ",
            (f"{passed:>12}  ", "dim"),
            (f"{what:<10}", STYLES.get(what, "bold")),
            " ",
        )
        yield line.append(brief(_details(event), 160))


def _details(event: Mapping[str, Any]) -> str:
    words = {"q": "queue", "worker": "worker", "group": "group"}
    return "  ".join(
        f"{words.get(name, name)} {value}"
        for name, value in event.items()
        if name not in ("when", "what") and value != ""
    )
