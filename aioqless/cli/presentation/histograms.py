"""Histograms of a queue's day, as bars; and lines of them."""

from __future__ import annotations

from collections.abc import Sequence

from aioqless.cli.presentation.formatting import span

BLOCKS = " ▏▎▍▌▋▊▉█"
SPARKS = "▁▂▃▄▅▆▇█"
# Where each of a day's 148 counters begins, in seconds: by seconds, minutes, hours, days.
BEGINS = [
    *range(60),
    *range(60, 3600, 60),
    *range(3600, 86400, 3600),
    *range(86400, 7 * 86400, 86400),
]
MILLISECONDS = [
    0,
    0.001,
    0.002,
    0.005,
    0.01,
    0.02,
    0.05,
    0.1,
    0.2,
    0.5,
]  # where each of its 10 counters of the first second begins
# Where the bars begin that people are shown.
SHOWN = [
    *MILLISECONDS,
    1,
    2,
    5,
    10,
    20,
    30,
    60,
    120,
    300,
    600,
    1800,
    3600,
    7200,
    21600,
    43200,
    86400,
    172800,
]


def gathered(histogram: Sequence[int], milliseconds: Sequence[int] = ()) -> list[tuple[str, int]]:
    """The counters as fewer bars, (label, count), from the first that has anything to the last."""
    counts = [0] * len(SHOWN)
    for begin, end, count in _counters(histogram, milliseconds):
        if end == 1 and begin == 0:  # counted in whole seconds, by another client
            counts[len(MILLISECONDS) - 1] += count
        else:
            counts[max(index for index, start in enumerate(SHOWN) if start <= begin)] += count
    used = [index for index, count in enumerate(counts) if count]
    if not used:
        return []
    return [(_label(index), counts[index]) for index in range(used[0], used[-1] + 1)]


def quantile(histogram: Sequence[int], share: float, milliseconds: Sequence[int] = ()) -> float:
    """Below how many seconds this share of all was: where the counter ends that has it."""
    wanted, below = share * sum(histogram), 0
    for _, end, count in _counters(histogram, milliseconds):
        below += count
        if count and below >= wanted:
            return end
    return 0


def _counters(
    histogram: Sequence[int], milliseconds: Sequence[int]
) -> list[tuple[float, float, int]]:
    """(begin, end, count) of each counter, in the order of their ends. Of the first second, what
    has no milliseconds comes last."""
    fine = (
        [*zip(MILLISECONDS, [*MILLISECONDS[1:], 1], milliseconds, strict=True)]
        if milliseconds
        else []
    )
    rest = max(0, histogram[0] - sum(milliseconds))
    coarse = zip(BEGINS, [*BEGINS[1:], 7 * 86400], [rest, *histogram[1:]], strict=True)
    return [*fine, *coarse]


def bar(value: float, most: float, width: int) -> str:
    """A bar as long as the value is of the most; anything above nothing is seen."""
    if not value or not most:
        return ""
    eighths = max(1, round(value / most * width * 8))
    return "█" * (eighths // 8) + BLOCKS[eighths % 8].strip()


def spark(values: Sequence[float]) -> str:
    """A line of small bars."""
    most = max(values, default=0)
    return "".join(
        SPARKS[min(7, int(value / most * 7.999))] if most and value else SPARKS[0]
        for value in values
    )


def _label(index: int) -> str:
    begin = SHOWN[index]
    if index + 1 == len(SHOWN):
        return f"≥ {span(begin)}"
    return f"< {span(SHOWN[index + 1])}"
