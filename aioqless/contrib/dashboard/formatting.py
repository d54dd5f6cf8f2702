"""How values are said to people: numbers, sizes, spans of time, moments, events."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

EVENTS = {
    "put": "Put into {q}",
    "popped": "Started by {worker}",
    "done": "Completed",
    "failed": "Failed in {group}",
    "failed-retries": "Failed: no retries were left ({group})",
    "timed-out": "Timed out: taken from its worker",
    "lock-lost": "Lock lost",
    "retried": "To be retried",
    "moved": "Moved",
    "released": "Handed back",
    "advanced": "Went on to {q}",
    "abandoned": "Time ran out for {worker}",
    "skipped": "Skipped by {worker}",
    "handed-over": "Handed over by {worker} to {to}",
}


def number(value: float) -> str:
    """1,234; with a fraction where it matters."""
    if value == int(value):
        return f"{int(value):,}"
    return (
        f"{value:,.2f}"
        if abs(value) < 10
        else f"{value:,.1f}"
        if abs(value) < 1000
        else f"{value:,.0f}"
    )


def counted(count: int, what: str) -> str:
    """1 job, 2 jobs."""
    return f"{number(count)} {what}{'' if count == 1 else 's'}"


def short(value: float) -> str:
    """1.2k, 3.4M: for tight places."""
    for size, name in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if name == 'k' else size):.3g}{name}"
    return number(value)


def size(count: float) -> str:
    """Bytes."""
    for name in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024 or name == "GiB":
            return f"{count:.0f} {name}" if name == "B" else f"{count:.3g} {name}"
        count /= 1024
    raise AssertionError


def span(seconds: float) -> str:
    """A span of time, in the two units that matter."""
    if seconds < 0.00005:
        return "0 s"
    if seconds < 0.00995:
        return f"{seconds * 1000:.1f} ms".replace(".0 ms", " ms")
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    parts, left = [], round(seconds)
    for name, length in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, left = divmod(left, length)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts[:2])


def moment(when: float | None) -> Markup | str:
    """A time of day; in a browser it becomes `12 s ago` by itself, so that a page needn't be sent
    anew for it."""
    if not when:
        return "—"
    try:
        at = datetime.fromtimestamp(when, UTC)
    except (ValueError, OverflowError, OSError):
        return "—"
    said = at.isoformat(" ", "seconds")[:19]  # nothing of it needs escaping: a page has many
    return Markup(
        f'<time datetime="{at.isoformat(timespec="milliseconds")}" title="{said} UTC">{said}</time>'
    )


def day(when: float) -> str:
    """Return the date of a moment, in UTC."""
    return datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%d")


def event(told: Mapping[str, Any]) -> str:
    """Return an event of a job's history as a sentence. Only our own sentences are templates: what
    a handler logs is shown as it is."""
    what = str(told.get("what"))
    if what not in EVENTS:
        return what
    try:
        return EVENTS[what].format_map({name: str(value) for name, value in told.items()})
    except KeyError:  # another client's event without our fields
        return what


def more(told: Mapping[str, Any]) -> str:
    """What else is told of an event."""
    said = EVENTS.get(str(told.get("what")), "")
    rest = {
        name: value
        for name, value in told.items()
        if name not in ("when", "what") and "{" + name + "}" not in said
    }
    return ", ".join(f"{name}: {value}" for name, value in rest.items() if value not in ("", None))[
        :1000
    ]


def last_line(text: str) -> str:
    """What an error says: a traceback ends with it."""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""
