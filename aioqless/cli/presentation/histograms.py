"""Histograms of a queue's day as bars, and sparklines."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from aioqless.cli.presentation.formatting import format_duration

EIGHTHS = " ▏▎▍▌▋▊▉█"
SPARKS = "▁▂▃▄▅▆▇█"
# Where each of the 148 counters of qless begins, in seconds: by seconds, minutes, hours, days.
COUNTER_STARTS = [
    *range(60),
    *range(60, 3600, 60),
    *range(3600, 86400, 3600),
    *range(86400, 7 * 86400, 86400),
]
# Where the bars begin that people are shown of them.
BAR_STARTS = [
    *(0, 1, 2, 5, 10, 20, 30),
    *(60, 120, 300, 600, 1800),
    *(3600, 7200, 21600, 43200),
    *(86400, 172800),
]


def merge_counters(histogram: Sequence[int]) -> list[tuple[float, float, int]]:
    """Merge the counters of qless into fewer bars: the begin, the end and the count of each."""
    counts = [0] * len(BAR_STARTS)
    for begin, count in zip(COUNTER_STARTS, histogram, strict=True):
        counts[bisect_right(BAR_STARTS, begin) - 1] += count
    return list(zip(BAR_STARTS, [*BAR_STARTS[1:], math.inf], counts, strict=True))


def label_bars(bars: Iterable[tuple[float, float, int]]) -> list[tuple[str, int]]:
    """Return (label, count) of each bar, from the first used one to the last."""
    listed = list(bars)
    used = [at for at, (_, _, count) in enumerate(listed) if count]
    return [
        (f"≥ {format_duration(begin)}" if end == math.inf else f"< {format_duration(end)}", count)
        for begin, end, count in (listed[used[0] : used[-1] + 1] if used else ())
    ]


def draw_bar(value: float, maximum: float, width: int) -> str:
    """Return a bar of `width` columns at the maximum; a value above 0 is always visible."""
    if not value or not maximum:
        return ""
    eighths = max(1, round(value / maximum * width * 8))
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def draw_sparkline(values: Sequence[float]) -> str:
    """Return a line of small bars."""
    maximum = max(values, default=0)
    return "".join(
        SPARKS[min(7, int(value / maximum * 7.999))] if maximum and value else SPARKS[0]
        for value in values
    )
