"""A job's life as a strip: how long it waited and ran, stage by stage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from markupsafe import Markup

import aioqless.contrib.dashboard.formatting as wording

WIDTH, HEIGHT = 1000, 22
LEAST = 6.0
SHORTEST = 0.001  # seconds: a history may know of whole ones only, in which much can happen
MOST = 200  # spans
AFTER = {
    "put": "waited",
    "popped": "ran",
    "retried": "waited",
    "released": "waited",
    "timed-out": "waited",
    "lock-lost": "waited",
    "abandoned": "waited",
    "skipped": "waited",
    "failed": "lay failed",
}
KINDS = {"waited": "wait", "ran": "run", "lay failed": "bad"}


def strip(events: Sequence[Mapping[str, Any]], state: str, now: float) -> Markup:
    """Each span between two events about as wide as it was long, with some width left to the short
    ones. The last reaches to now, unless the job is complete."""
    spans = list(_spans(events, state, now))[-MOST:]
    if not spans:
        return Markup("")
    weights = _weights(spans)
    whole = sum(weights) or 1.0
    free, drawn, at = max(0.0, WIDTH - LEAST * len(spans)), Markup(""), 0.0
    for (what, length), weight in zip(spans, weights, strict=True):
        width = (
            LEAST if LEAST * len(spans) < WIDTH else WIDTH / len(spans)
        ) + free * weight / whole
        drawn += Markup(
            '<g><title>{} {}</title><rect class="{}" x="{:.1f}" y="0" width="{:.1f}" height="{}" rx="3"/></g>'
        ).format(what, wording.span(length), KINDS[what], at, max(1.0, width - 1.5), HEIGHT)
        at += width
    said = ", ".join(f"{what} {wording.span(length)}" for what, length in spans[-6:])
    return Markup(
        '<svg class="strip" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>'
    ).format(WIDTH, HEIGHT, said, drawn)


def _spans(
    events: Sequence[Mapping[str, Any]], state: str, now: float
) -> Iterator[tuple[str, float]]:
    told = [each for each in events if each.get("what") in AFTER or each.get("what") == "done"]
    for before, after in pairwise(told):
        if before["what"] in AFTER:
            yield AFTER[before["what"]], max(0.0, after["when"] - before["when"])
    if told and state != "complete" and told[-1]["what"] in AFTER:
        yield AFTER[told[-1]["what"]], max(0.0, now - told[-1]["when"])


def _weights(spans: Sequence[tuple[str, float]]) -> list[float]:
    """How wide spans are drawn: that in which a job lay failed tells nothing of its work, and takes
    a tenth at most."""
    lengths = [max(length, SHORTEST) for _, length in spans]
    work = sum(
        length for (what, _), length in zip(spans, lengths, strict=True) if what != "lay failed"
    )
    return [
        min(length, work * 0.1) if what == "lay failed" else length
        for (what, _), length in zip(spans, lengths, strict=True)
    ]
