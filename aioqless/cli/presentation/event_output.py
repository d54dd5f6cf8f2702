"""Prints events and outcomes of jobs."""

from __future__ import annotations

from aioqless.cli.presentation.formatting import (
    STYLES,
    format_duration,
    format_time,
    last_line,
    shorten,
)
from aioqless.cli.presentation.printing import make_console
from aioqless.client.events import AnyEvent, Missed
from aioqless.client.job import JobRecord
from aioqless.validation import plain

_EVENT_STYLES = STYLES | {
    "completed": STYLES["complete"],
    "put": STYLES["waiting"],
    "lock_lost": "yellow",
    "missed": "reverse",
}


def describe_event(event: AnyEvent) -> str:
    """Return the fields of an event, besides its kind and time, in one line."""
    if isinstance(event, Missed):
        seconds = format_duration(event.until - event.since)
        return f"events of {seconds} may be missing: {shorten(event.why, 100)}"
    fields = [
        (name, value)
        for name, value in vars(event).items()
        if name not in ("kind", "when", "jid") and value not in (None, {})
    ]
    jid = getattr(event, "jid", None)
    texts = ((name, str(value)) for name, value in fields)
    described = (
        f"{name}={shorten(last_line(text) if name == 'message' else text, 100)}"
        for name, text in texts
    )
    return "  ".join([*([plain(jid)] if jid else []), *described])


def print_event(event: AnyEvent, *, errors: bool = False) -> None:
    """Print an event for people, on standard error if `errors` is set."""
    from rich.text import Text

    text = Text.assemble(
        (f"{format_time(event.when)[11:]}  ", "dim"),
        (f"{plain(event.kind):<12}", _EVENT_STYLES.get(event.kind, "")),
        describe_event(event),
    )
    make_console(errors=errors).print(text, soft_wrap=True)


def print_outcome(job: JobRecord, seconds: float) -> None:
    """Print how a job ended, after a number of seconds."""
    from rich.text import Text

    text = Text.assemble(
        plain(job.jid),
        "  ",
        (job.state, STYLES[job.state]),
        f"  after {format_duration(seconds)}",
    )
    if job.failure and job.state == "failed":
        why = shorten(job.failure.message, 200)
        text.append(f"  {plain(job.failure.group)}: {why}")
    make_console(errors=True).print(text, soft_wrap=True)
