"""Formats numbers, sizes, times and events for people; most are template filters."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from markupsafe import Markup

from aioqless.client.generated_jid import JID_DIGITS
from aioqless.contrib.job_filter import Condition, Text

MAX_DETAILS = 1000  # characters
GENERATED_JID = re.compile(f"[0-9a-f]{{{JID_DIGITS}}}")
EVENTS = {
    "put": "Enqueued in {q}", "popped": "Started by {worker}", "done": "Completed",
    "failed": "Failed in {group}", "failed-retries": "Failed: no retries left ({group})",
    "timed-out": "Timed out: taken from its worker", "lock-lost": "Lock lost",
    "retried": "Retry scheduled", "moved": "Moved", "released": "Released",
    "superseded": "Superseded by {by}",
    "declined": "Declined: {worker} has no handler for this class", "advanced": "Advanced to {q}",
    "step": "Step {name} stored", "cursor": "Cursor {name} stored",
    "wait": "Waits for signal {name}", "signal": "Signal {name} sent",
    "received": "Signal {name} received", "timeout": "Signal {name} did not come in time",
    "sleep": "Sleep {name} began", "slept": "Sleep {name} ended", "call": "Job called: {name}",
    "called": "Called job ended: {name}", "abandoned": "Reservation of {worker} expired",
    "skipped": "Skipped by {worker}", "handed-over": "Handed over by {worker} to {to}",
}  # fmt: skip


_WEEK = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
DAYS = {str(number): name for number, name in enumerate(_WEEK)} | {
    name[:3].lower(): name for name in _WEEK
}
# Names of the fields of actions; others are shown as they are stored.
FIELDS = {"jid": "Job", "how": "Saved as", "then": "Next page", "other": "Dependency"}


def field_name(name: str) -> str:
    """Return the label of a form's field."""
    return FIELDS.get(name, name.replace("-", " ").capitalize())


def filter_word(name: str, key: str) -> str:
    """Return the filter for the jobs that have a name under a key such as `tag`."""
    return str(Condition(key, (Text(name),)))


def state_name(state: str) -> str:
    """Return what a job's state is called: qless stores a blocked job as `depends`."""
    return "blocked" if state == "depends" else state


def number(value: float) -> str:
    """Format a number: 1,234; with decimals if it is small."""
    if value == int(value):
        return f"{int(value):,}"
    if abs(value) < 10:
        return f"{value:,.2f}"
    return f"{value:,.1f}" if abs(value) < 1000 else f"{value:,.0f}"


def short_jid(jid: str) -> str:
    """Shorten a generated jid; one that a client chose is shown whole."""
    return jid[:12] if GENERATED_JID.fullmatch(jid) else jid


def short(value: float) -> str:
    """Format a number for narrow columns: 1.2k, 3.4M."""
    for size, name in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if name == 'k' else size):.3g}{name}"
    return number(value)


def size(count: float) -> str:
    """Format a number of bytes."""
    for name in ("B", "KiB", "MiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {name}" if name == "B" else f"{count:.3g} {name}"
        count /= 1024
    return f"{count:.3g} GiB"


def timestamp(when: float | None, exact: bool = False) -> Markup | str:
    """Format a time as an HTML element.

    The browser's script turns it into `12 s ago`, so that a page need not be sent again for it;
    with `exact`, it adds the time in the reader's time zone.
    """
    if not when:
        return "—"
    try:
        at = datetime.fromtimestamp(when, UTC)
    except (ValueError, OverflowError, OSError):
        return "—"
    text = at.isoformat(" ", "seconds")[:19]
    machine = at.isoformat(timespec="milliseconds")
    # digits alone, which need no escaping: a page has many of them
    kind = ' class="exact"' if exact else ""
    return Markup(f'<time{kind} datetime="{machine}" title="{text} UTC">{text} UTC</time>')


def clock(when: float, zone: str | None) -> str:
    """Format a time in the time zone of a schedule; empty if that is UTC or unknown."""
    try:
        at = datetime.fromtimestamp(when, ZoneInfo(zone or "UTC"))
    except (ValueError, OSError, KeyError, OverflowError):
        return ""
    return "" if zone in (None, "UTC") else f"{at:%Y-%m-%d %H:%M:%S} {zone}"


def day(when: float) -> str:
    """Format the date of a time, in UTC."""
    return datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%d")


def cron_words(expression: str) -> str:
    """Return a common cron expression in words; an empty text for any other."""
    fields = expression.lower().split()
    if len(fields) != 5 or fields[3] != "*":
        return ""
    minute, hour, day, _, weekday = fields
    if (day, weekday) == ("*", "*") and not hour.replace(",", "").isdecimal():
        every, _, step = (minute if hour == "*" else hour).partition("/")
        if hour == "*" and every == "*":
            return f"every {step} minutes" if step else "every minute"
        if minute.isdecimal() and (hour == "*" or (every == "*" and step)):
            return f"every {step + ' hours' if step else 'hour'}, {minute} min past the hour"
        return ""
    if not minute.isdecimal() or not all(each.isdecimal() for each in hour.split(",")):
        return ""
    at = " and ".join(f"{int(each):02}:{int(minute):02}" for each in hour.split(","))
    if weekday == "*":
        days = (
            "every day" if day == "*" else f"on day {day} of each month" if day.isdecimal() else ""
        )
    else:
        days = _weekdays(weekday) if day == "*" else ""
    return f"{days} at {at}" if days else ""


def _weekdays(text: str) -> str:
    """Return days of the week in words, of a range or a list; an empty text for others."""
    separator, word = ("-", " to ") if "-" in text else (",", ", ")
    names = [DAYS.get(each, "") for each in text.split(separator)]
    return word.join(names) if all(names) else ""


def describe_event(event: Mapping[str, Any]) -> str:
    """Return an event of a job's history as a sentence; a handler's own as it was logged."""
    what = str(event.get("what"))
    if what not in EVENTS:
        return what
    try:
        return EVENTS[what].format_map({name: str(value) for name, value in event.items()})
    except KeyError:  # another client's event without our fields
        return what


def event_details(event: Mapping[str, Any], redact_value: Callable[[str, object], str]) -> str:
    """Return the fields of an event that its sentence does not contain, without secrets."""
    sentence = EVENTS.get(str(event.get("what")), "")
    details = {
        name: value
        for name, value in event.items()
        if name not in ("when", "what") and "{" + name + "}" not in sentence
    }
    text = ", ".join(
        f"{name}: {redact_value(name, value)}"
        for name, value in details.items()
        if value not in ("", None)
    )
    return text[:MAX_DETAILS]
