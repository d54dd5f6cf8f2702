"""A job's life as a strip: how long it waited and ran in each stage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from markupsafe import Markup

from aioqless.cli.presentation.formatting import format_duration

WIDTH, HEIGHT = 1000, 22
MIN_WIDTH = 6.0
MIN_LENGTH = 0.001  # seconds: times in a history may be rounded to whole seconds
MAX_SPANS = 200
AFTER = {
    "put": "waited", "popped": "ran", "retried": "waited", "released": "waited",
    "timed-out": "waited", "lock-lost": "waited", "abandoned": "waited", "skipped": "waited",
    "failed": "in failed state",
}  # fmt: skip
KINDS = {"waited": "wait", "ran": "run", "in failed state": "bad"}


def strip(events: Sequence[Mapping[str, Any]], state: str, now: float) -> Markup:
    """Draw the spans between events about as wide as they were long.

    Short ones get a minimum width. The last one ends now, unless the job is complete.
    """
    spans = list(_spans(events, state, now))[-MAX_SPANS:]
    if not spans:
        return Markup("")
    weights = _weights(spans)
    whole = sum(weights) or 1.0
    free, drawn, at = max(0.0, WIDTH - MIN_WIDTH * len(spans)), Markup(""), 0.0
    for (what, length), weight in zip(spans, weights, strict=True):
        width = (
            MIN_WIDTH if MIN_WIDTH * len(spans) < WIDTH else WIDTH / len(spans)
        ) + free * weight / whole
        drawn += Markup(
            '<g><title>{} {}</title><rect class="{}" x="{:.1f}" y="0" width="{:.1f}" height="{}" '
            'rx="3"/></g>'
        ).format(what, format_duration(length), KINDS[what], at, max(1.0, width - 1.5), HEIGHT)
        at += width
    label = ", ".join(f"{what} {format_duration(length)}" for what, length in spans[-6:])
    return Markup(
        '<svg class="strip" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" '
        'aria-label="{}">{}</svg>'
    ).format(WIDTH, HEIGHT, label, drawn)


def _spans(
    events: Sequence[Mapping[str, Any]], state: str, now: float
) -> Iterator[tuple[str, float]]:
    stages = [each for each in events if each.get("what") in AFTER or each.get("what") == "done"]
    for before, after in pairwise(stages):
        if before["what"] in AFTER:
            yield AFTER[before["what"]], max(0.0, after["when"] - before["when"])
    if stages and state != "complete" and stages[-1]["what"] in AFTER:
        yield AFTER[stages[-1]["what"]], max(0.0, now - stages[-1]["when"])


def _weights(spans: Sequence[tuple[str, float]]) -> list[float]:
    """Return the relative widths of spans; the time for which a job was failed gets little."""
    lengths = [max(length, MIN_LENGTH) for _, length in spans]
    work = sum(
        length
        for (what, _), length in zip(spans, lengths, strict=True)
        if what != "in failed state"
    )
    return [
        min(length, work * 0.1) if what == "in failed state" else length
        for (what, _), length in zip(spans, lengths, strict=True)
    ]
