"""Sparklines: rates of queues, memory of workers, and failures of the last day."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

from markupsafe import Markup

from aioqless.contrib.dashboard import formatting

TREND_BARS, TREND_HOURS = 24, 24


class Failures(Protocol):
    """Failed jobs, such as those of a group."""

    def since(self, when: float) -> float:
        """Return about how many failed since a time."""


def sparkline(
    rates: Sequence[tuple[float, float, float]],
    *,
    width: int = 120,
    height: int = 28,
    max_samples: int = 90,
) -> Markup:
    """Draw completed jobs per second as an area, and failed ones as a red line."""
    if len(rates) < 2:
        return Markup(
            '<svg class="spark" width="{}" height="{}" role="img" aria-label="No rates yet"></svg>'
        ).format(width, height)
    most = max(max(done, failed) for _, done, failed in rates) or 1.0
    return _draw(
        [each for _, each, _ in rates],
        [each for _, _, each in rates],
        most=most,
        label=f"{formatting.number(rates[-1][1])} jobs/s now, maximum {formatting.number(most)}",
        size=(width, height),
        max_samples=max_samples,
    )


def memory_line(bytes_used: Sequence[float], *, width: int = 90, height: int = 20) -> Markup:
    """Draw what a worker has used, a sample a minute, as an area; nothing without two samples."""
    if len(bytes_used) < 2:
        return Markup("")
    low, most = (formatting.size(value) for value in (min(bytes_used), max(bytes_used)))
    return _draw(
        bytes_used,
        (),
        most=max(bytes_used) or 1.0,
        label=f"{low} to {most} in the last {len(bytes_used)} min",
        size=(width, height),
        max_samples=len(bytes_used),
    )


def _draw(
    values: Sequence[float],
    bad: Sequence[float],
    *,
    most: float,
    label: str,
    size: tuple[int, int],
    max_samples: int,
) -> Markup:
    """Draw values as an area, and bad ones, if there are any, as a red line."""
    width, height = size
    step = width / (max_samples - 1)
    first = width - step * (len(values) - 1)

    def line(values: Sequence[float]) -> str:
        return " ".join(
            f"{first + at * step:.1f},{height - 2 - value / most * (height - 4):.1f}"
            for at, value in enumerate(values)
        )

    failed = line(bad) if any(bad) else ""
    return Markup(
        '<svg class="spark" width="{w}" height="{h}" viewBox="0 0 {w} {h}" '
        'preserveAspectRatio="none" role="img" aria-label="{label}"><title>{label}</title>'
        '<line class="axis" x1="0" y1="{h}" x2="{w}" y2="{h}"/>'
        '<polygon class="area" points="{first:.1f},{h} {done} {w},{h}"/>'
        '<polyline class="line" points="{done}"/>{failed}</svg>'
    ).format(
        w=width,
        h=height,
        label=label,
        first=first,
        done=line(values),
        failed=Markup('<polyline class="line bad" points="{}"/>').format(failed) if failed else "",
    )


def hourly_failures(groups: Sequence[Failures], now: float) -> list[float]:
    """Return about how many jobs of the groups failed in each of the last 24 hours."""
    hour = TREND_HOURS * 3600 / TREND_BARS
    counts = [0.0] * TREND_BARS
    for group in groups:
        since = [group.since(now - hour * ago) for ago in range(TREND_BARS, -1, -1)]
        for at, (before, after) in enumerate(pairwise(since)):
            counts[at] += max(0.0, before - after)
        counts[-1] += since[-1]
    return counts


def trend(groups: Sequence[Failures], now: float, *, width: int = 120, height: int = 28) -> Markup:
    """Draw about how many jobs of the groups failed in each of the last 24 hours."""
    counts = hourly_failures(groups, now)
    most, step = max(counts) or 1.0, width / TREND_BARS
    sizes = [max(1.5, count / most * height) if count >= 0.5 else 0.0 for count in counts]
    bars = "".join(
        f"M{at * step:.1f} {height}v{-size:.1f}h{step - 1:.1f}v{size:.1f}z"
        for at, size in enumerate(sizes)
        if size
    )
    in_a_day, in_an_hour = (formatting.number(round(each)) for each in (sum(counts), counts[-1]))
    label = f"about {in_a_day} failures in 24 h, {in_an_hour} in the last hour"
    return Markup(  # numbers alone, which need no escaping
        f'<svg class="spark" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" aria-label="{label}"><title>{label}</title>'
        f'<line class="axis" x1="0" y1="{height - 0.5}" x2="{width}" y2="{height - 0.5}"/>'
        f'<path class="bad" d="{bars}"/></svg>'
    )
