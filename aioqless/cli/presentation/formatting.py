"""Formats times, durations and counts."""

from __future__ import annotations

import time
from datetime import datetime

from aioqless.validation import plain

STYLES = {
    "waiting": "cyan",
    "scheduled": "blue",
    "depends": "magenta",
    "running": "green",
    "stalled": "yellow",
    "failed": "bold red",
    "complete": "dim green",
    "paused": "yellow",
}


def shorten(text: str, width: int = 80) -> str:
    """Return the text as one line of at most `width` characters."""
    line = plain(" ".join(text[: 4 * width].split()))
    return line if len(line) <= width and len(text) <= 4 * width else f"{line[: width - 1]}…"


def last_line(text: str) -> str:
    """Return the last line that is not blank: the message of a traceback."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def format_duration(seconds: float) -> str:
    """Format a duration: 350 ms, 12 s, 4 min 10 s, 3 h 5 min, 12 d 4 h."""
    if seconds < 0:
        return f"-{format_duration(-seconds)}"
    if seconds < 0.00995:
        return f"{seconds * 1000:.1f} ms".replace(".0 ms", " ms")
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    total = round(seconds)
    for unit, size, smaller_unit, smaller_size in (
        ("d", 86400, "h", 3600),
        ("h", 3600, "min", 60),
        ("min", 60, "s", 1),
    ):
        if total >= size:
            rest = total % size // smaller_size
            return f"{total // size} {unit}" + (f" {rest} {smaller_unit}" if rest else "")
    return f"{total} s"


def format_relative_time(when: float, now: float | None = None) -> str:
    """Format how long ago a time was, or in how long it will be."""
    since = (time.time() if now is None else now) - when
    return f"in {format_duration(-since)}" if since < 0 else f"{format_duration(since)} ago"


def format_time(when: float) -> str:
    """Format a time in the reader's time zone."""
    return datetime.fromtimestamp(when).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def pluralize(count: int, singular: str, plural: str | None = None) -> str:
    """Format a count and its noun: 1 job, 1,200 jobs."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"
