"""Words for a person: times, durations, texts that can't spoil a terminal."""

from __future__ import annotations

import time
from datetime import datetime

from aioqless.validation import plain as plain

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


def brief(text: str, most: int = 80) -> str:
    """The text in one line of at most so many characters."""
    line = plain(" ".join(text[: 4 * most].split()))
    return line if len(line) <= most and len(text) <= 4 * most else f"{line[: most - 1]}…"


def span(seconds: float) -> str:
    """A duration: 350 ms, 12 s, 4 min 10 s, 3 h 5 min, 12 d 4 h."""
    if seconds < 0:
        return f"-{span(-seconds)}"
    if seconds < 0.00995:
        return f"{seconds * 1000:.1f} ms".replace(".0 ms", " ms")
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    whole = round(seconds)
    for unit, size, below, smaller in (
        ("d", 86400, "h", 3600),
        ("h", 3600, "min", 60),
        ("min", 60, "s", 1),
    ):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size} {unit}" + (f" {rest} {below}" if rest else "")
    return f"{whole} s"


def ago(when: float, now: float | None = None) -> str:
    """How long ago something was, or in how long it will be."""
    since = (time.time() if now is None else now) - when
    return f"in {span(-since)}" if since < 0 else f"{span(since)} ago"


def clock(when: float) -> str:
    """A time, where the reader is."""
    return datetime.fromtimestamp(when).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def many(count: int, one: str, several: str | None = None) -> str:
    """1 job, 1,200 jobs."""
    return f"{count:,} {one if count == 1 else several or one + 's'}"
