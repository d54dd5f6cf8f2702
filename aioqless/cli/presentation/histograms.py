"""Histograms of a queue's day as bars, and sparklines."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from aioqless.cli.presentation.formatting import format_duration

EIGHTHS = " ▏▎▍▌▋▊▉█"
SPARKS = "▁▂▃▄▅▆▇█"
WEEK = 7 * 86400
# Where each of a day's 148 counters begins, in seconds: by seconds, minutes, hours, days.
COUNTER_STARTS = [
    *range(60),
    *range(60, 3600, 60),
    *range(3600, 86400, 3600),
    *range(86400, WEEK, 86400),
]
# Where each of the 10 finer counters of the first second begins.
MILLISECONDS = [0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5]
# Where the bars begin that people are shown.
BAR_STARTS = [
    *MILLISECONDS,
    *(1, 2, 5, 10, 20, 30),
    *(60, 120, 300, 600, 1800),
    *(3600, 7200, 21600, 43200),
    *(86400, 172800),
]


def merge_counters(
    histogram: Sequence[int], milliseconds: Sequence[int] = ()
) -> list[tuple[str, int]]:
    """Merge the counters into fewer bars, (label, count), from the first used one to the last."""
    counts, rest = sum_counters(BAR_STARTS, histogram, milliseconds)
    counts[len(MILLISECONDS) - 1] += rest
    used = [index for index, count in enumerate(counts) if count]
    if not used:
        return []
    return [(_label(index), counts[index]) for index in range(used[0], used[-1] + 1)]


def sum_counters(
    starts: Sequence[float], histogram: Sequence[int], milliseconds: Sequence[int]
) -> tuple[list[int], int]:
    """Return the sum of the counters from each start on, and that of an undivided first second."""
    sums, rest = [0] * len(starts), 0
    for begin, end, count in _counters(histogram, milliseconds):
        if (begin, end) == (0, 1):  # counted in whole seconds, by another client
            rest = count
        else:
            sums[bisect_right(starts, begin) - 1] += count
    return sums, rest


def compute_quantile(
    histogram: Sequence[int], share: float, milliseconds: Sequence[int] = ()
) -> float:
    """Return an upper bound of the quantile, in seconds: the end of the counter that has it."""
    wanted, below = share * sum(histogram), 0
    for _, end, count in _counters(histogram, milliseconds):
        below += count
        if count and below >= wanted:
            return end
    return 0


def _counters(
    histogram: Sequence[int], milliseconds: Sequence[int]
) -> list[tuple[float, float, int]]:
    """Return (begin, end, count) of each counter, in the order of their ends.

    The rest of the first second, which has no milliseconds, comes last of that second.
    """
    fine = (
        [*zip(MILLISECONDS, [*MILLISECONDS[1:], 1], milliseconds, strict=True)]
        if milliseconds
        else []
    )
    rest = max(0, histogram[0] - sum(milliseconds))
    ends = [*COUNTER_STARTS[1:], WEEK]
    coarse = zip(COUNTER_STARTS, ends, [rest, *histogram[1:]], strict=True)
    return [*fine, *coarse]


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


def _label(index: int) -> str:
    begin = BAR_STARTS[index]
    if index + 1 == len(BAR_STARTS):
        return f"≥ {format_duration(begin)}"
    return f"< {format_duration(BAR_STARTS[index + 1])}"
