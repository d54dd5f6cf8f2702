"""Histograms of a queue's day, as bars; and lines of them."""

from __future__ import annotations

from collections.abc import Sequence

from aioqless.cli.words import span

BLOCKS = " ▏▎▍▌▋▊▉█"
SPARKS = "▁▂▃▄▅▆▇█"
# Where each of a day's 148 counters begins, in seconds: by seconds, minutes, hours, days.
BEGINS = [*range(60), *range(60, 3600, 60), *range(3600, 86400, 3600), *range(86400, 7 * 86400, 86400)]
# Where the bars begin that people are shown.
SHOWN = [0, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400, 172800]


def gathered(histogram: Sequence[int]) -> list[tuple[str, int]]:
    """The counters as fewer bars, (label, count), from the first that has anything to the last."""
    counts = [0] * len(SHOWN)
    for begin, count in zip(BEGINS, histogram, strict=True):
        counts[max(index for index, start in enumerate(SHOWN) if start <= begin)] += count
    used = [index for index, count in enumerate(counts) if count]
    if not used:
        return []
    return [(_label(index), counts[index]) for index in range(used[0], used[-1] + 1)]


def quantile(histogram: Sequence[int], share: float) -> float:
    """Below how many seconds this share of all was: where the counter ends that has it."""
    wanted, below = share * sum(histogram), 0
    for index, count in enumerate(histogram):
        below += count
        if count and below >= wanted:
            return BEGINS[index + 1] if index + 1 < len(BEGINS) else 7 * 86400
    return 0


def bar(value: float, most: float, width: int) -> str:
    """A bar as long as the value is of the most; anything above nothing is seen."""
    if not value or not most:
        return ""
    eighths = max(1, round(value / most * width * 8))
    return "█" * (eighths // 8) + BLOCKS[eighths % 8].strip()


def spark(values: Sequence[float]) -> str:
    """A line of small bars."""
    most = max(values, default=0)
    return "".join(SPARKS[min(7, int(value / most * 7.999))] if most and value else SPARKS[0] for value in values)


def _label(index: int) -> str:
    begin = SHOWN[index]
    if index + 1 == len(SHOWN):
        return f"≥ {span(begin)}"
    return f"< {span(SHOWN[index + 1])}"
