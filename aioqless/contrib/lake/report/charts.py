"""The charts of the report: each function takes plain numbers and a width, and returns SVG."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.patches import BoxStyle, FancyBboxPatch
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, MultipleLocator, NullLocator

from aioqless.contrib.lake.report.theme import (
    DONE,
    FAIL,
    GROUPS,
    HALF,
    INK,
    MUTED,
    NARROW,
    RUN,
    WAIT,
    WIDE,
    draw_chart,
    remove_lines,
)

WEEKDAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY: Final = 86_400
_UNITS: Final = ((_DAY, "d"), (3600, "h"), (60, "min"), (1, "s"), (0.001, "ms"), (1e-6, "µs"))
_MINUTES: Final = (60, 120, 300, 600, 900, 1800)
_HOURS: Final = (3600, 7200, 10_800, 21_600, 43_200)
_DAYS: Final = tuple(number * _DAY for number in (1, 2, 5, 7, 14, 30, 91, 365))
_FRACTIONS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_STEPS: Final = (*_FRACTIONS, 1, 2, 5, 10, 15, 30, *_MINUTES, *_HOURS, *_DAYS)
# Round durations, for logarithmic axes.
_TICKS: Final = (
    *(1e-5, 1e-4, 0.001, 0.01, 0.1, 1, 10, 60, 600, 3600, 36_000),
    *(_DAY, 10 * _DAY, 100 * _DAY),
)
_RATES: Final = {"per day": _DAY, "per hour": 3600, "per minute": 60, "per second": 1}
_LEAST: Final = 1e-5  # seconds; logarithmic axes have no zero
_MAX_TICKS: Final = {WIDE: 12, HALF: 7, NARROW: 4}
_MAX_CHARACTERS: Final = {WIDE: 120, HALF: 64, NARROW: 42}  # of a name in a chart


@dataclass(frozen=True)
class Slot:
    """Quantiles of the times that began in one slot of a time axis."""

    at: float
    count: int
    quantiles: Sequence[float]  # median, p90, p99


def format_duration(seconds: float | None) -> str:
    """Return a duration as people write it: 1.2 s, 40 ms, 3 h."""
    if seconds is None:
        return "-"
    for width, unit in _UNITS:
        if seconds >= width * 0.9995:
            return f"{seconds / width:.3g} {unit}"
    return "0"


def shorten(name: str, most: int) -> str:
    """Return the end of a name, where most names differ, on one line."""
    line = "".join(each if each.isprintable() else " " for each in name)
    return line if len(line) <= most else f"…{line[1 - most :]}"


def draw_histogram(
    bars: Sequence[tuple[float, float, float]],
    color: str,
    marks: dict[str, float],
    title: str,
    width: float = HALF,
) -> str:
    """Draw the distribution of durations on a logarithmic axis, with quantiles marked."""
    with draw_chart(title, width, 2.5) as (drawing, axes):
        least = min((low for low, _, _ in bars if low > 0), default=1e-4)
        for low, high, many in bars:
            left = math.log10(low or least / 10 ** (1 / 8))
            axes.bar(
                left, many, (math.log10(high) - left) * 0.88, align="edge", color=color, alpha=0.85
            )
        top = max((many for _, _, many in bars), default=1)
        # Marks further to the right are lower, so that no line crosses a label.
        for level, (name, seconds) in enumerate(reversed(marks.items())):
            place, height = math.log10(max(seconds, least / 1.2)), top * (1.1 + 0.13 * level)
            axes.plot([place, place], [0, height], color=INK, linewidth=0.9, dashes=(3, 3))
            _write_beside(axes, place, height, f"{name} {format_duration(seconds)}", INK)
        left, right = axes.get_xlim()
        places = [math.log10(tick) for tick in _TICKS if left <= math.log10(tick) <= right + 0.3]
        axes.set_xticks(places)
        axes.set_xticklabels([format_duration(10**place) for place in places])
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        room = 0.12 if width > NARROW else 0.22
        axes.set(
            xlim=(left, right + room * (right - left)),
            ylim=(0, top * (1.2 + 0.13 * len(marks))),
        )
    return drawing.svg


def draw_quantiles(
    slots: Sequence[Slot], color: str, step: int, title: str, width: float = HALF
) -> str:
    """Draw the median and the bands up to the 90th and 99th percentile over time.

    Nothing is drawn between slots that others without a value separate.
    """
    with draw_chart(title, width, 2.5) as (drawing, axes):
        points = _with_breaks(slots, step)
        times = [at + step / 2 for at, _ in points]
        median, p90, p99 = (
            [max(values[index], _LEAST) if values else math.nan for _, values in points]
            for index in range(3)
        )
        band = {"color": color, "linewidth": 0}
        axes.fill_between(times, median, p99, alpha=0.16, label="up to p99", **band)
        axes.fill_between(times, median, p90, alpha=0.32, label="up to p90", **band)
        axes.plot(times, median, color=color, linewidth=1.8, label="median")
        alone = [
            index
            for index, (_, values) in enumerate(points)
            if values and not _has_value(points, index - 1) and not _has_value(points, index + 1)
        ]
        for index in alone:
            axes.plot([times[index]] * 2, [median[index], p99[index]], color=color, alpha=0.3)
            axes.plot([times[index]], [median[index]], "o", color=color, markersize=4)
        axes.set_yscale("log")
        _set_durations(axes.yaxis)
        _set_moments(axes, slots[0].at, slots[-1].at + step, _MAX_TICKS[width])
        _add_legend(axes, 1.18)
    return drawing.svg


def draw_flow(rows: Sequence[dict[str, Any]], step: int, width: float = WIDE) -> str:
    """Draw the runs that ended, and below them the jobs that waited and ran, over time."""
    title = "Runs that ended, and jobs that waited and ran, over time"
    height = 4.0 if width > NARROW else 4.4
    with draw_chart(title, width, height, 2, sharex=True) as (drawing, (above, below)):
        times = [row["at"] for row in rows]
        unit, scale = next(
            (name, seconds / step) for name, seconds in _RATES.items() if step >= seconds
        )
        bottom = [0.0] * len(rows)
        for name, color in (("completed", DONE), ("retried", WAIT), ("failed", FAIL)):
            counts = [row[name] * scale for row in rows]
            above.bar(
                times,
                counts,
                step * 0.9,
                bottom,
                align="edge",
                color=color,
                linewidth=0,
                label=name,
            )
            bottom = [low + more for low, more in zip(bottom, counts, strict=True)]
        for name, color in (("waiting", WAIT), ("running", RUN)):
            below.step(
                [*times, times[-1] + step],
                [*(row[name] for row in rows), rows[-1][name]],
                where="post",
                color=color,
                linewidth=1.5,
                label=name,
            )
        for axes, text in ((above, f"runs ended {unit}"), (below, "jobs at a time, mean")):
            axes.set_title(
                text, loc="left", fontsize=9, color=MUTED, pad=20 if width == NARROW else 6
            )
            axes.yaxis.set_major_locator(MaxNLocator(4))
            axes.set_ylim(bottom=0)
            _add_legend(axes, 1.26 if width > NARROW else 1.2)
        _set_moments(below, times[0], times[-1] + step, _MAX_TICKS[width])
    return drawing.svg


def draw_week(hours: Sequence[Sequence[int]], width: float = HALF) -> str:
    """Draw how many runs ended in each hour of the week."""
    most = max(max(day) for day in hours) or 1
    with draw_chart("Runs by weekday and hour", width, 2.4) as (drawing, axes):
        corners = BoxStyle.Round(pad=0, rounding_size=0.16)
        for number, day in enumerate(hours):
            for hour, many in enumerate(day):
                shade = 0.05 + 0.95 * math.sqrt(many / most)
                place = (hour + 0.08, number + 0.08)
                axes.add_patch(
                    FancyBboxPatch(
                        place, 0.84, 0.84, boxstyle=corners, color=RUN, alpha=shade, linewidth=0
                    )
                )
        marked = range(0, 24, 3 if width > NARROW else 6)
        axes.set(
            xlim=(0, 24),
            ylim=(7, 0),
            xticks=[hour + 0.5 for hour in marked],
            yticks=[number + 0.5 for number in range(7)],
        )
        axes.set_xticklabels([f"{hour}:00" for hour in marked])
        axes.set_yticklabels(WEEKDAYS)
        remove_lines(axes)
    return drawing.svg


def draw_klasses(rows: Sequence[dict[str, Any]], width: float = WIDE) -> str:
    """Draw the run times of the slowest classes: median to p95, and the longest."""
    rows = rows[::-1]
    with draw_chart("Run times of the slowest classes", width, _height(rows)) as (drawing, axes):
        for number, row in enumerate(rows):
            low, high, most = (max(row["run"][name], _LEAST) for name in ("p50", "p95", "most"))
            axes.plot([low, most], [number] * 2, color=RUN, alpha=0.25, linewidth=1.6)
            axes.plot(
                [low, high], [number] * 2, color=RUN, alpha=0.55, linewidth=8, solid_capstyle="butt"
            )
            axes.plot([low], [number], "o", color=RUN, markersize=7)
            _write_beside(axes, most, number, format_duration(row["run"]["most"]))
        axes.set_xscale("log")
        axes.margins(x=0.12 if width > NARROW else 0.2)
        _set_durations(axes.xaxis)
        _name_rows(axes, [row["klass"] for row in rows], width)
    return drawing.svg


def draw_failures(rows: Sequence[dict[str, Any]], width: float = HALF) -> str:
    """Draw the groups that failed most, each in the color that the trend has for it."""
    named = [(row, GROUPS[n] if n < len(GROUPS) else MUTED) for n, row in enumerate(rows)][::-1]
    with draw_chart("Failures by group", width, _height(named)) as (drawing, axes):
        for place, (row, color) in enumerate(named):
            axes.barh(place, row["count"], 0.4, color=color, linewidth=0)
            axes.barh(
                place, row["retried"], 0.4, left=row["count"], color=color, alpha=0.35, linewidth=0
            )
            _write_beside(axes, row["count"] + row["retried"], place, _count_failures(row))
        axes.xaxis.set_major_locator(MaxNLocator(5 if width > NARROW else 3, integer=True))
        axes.margins(x=0.3 if width > NARROW else 0.45)
        axes.set_xlim(left=0)
        _name_rows(axes, [row["failure_group"] for row, _ in named], width)
    return drawing.svg


def draw_trend(
    groups: Sequence[tuple[str, Sequence[int]]], first: float, step: int, width: float = HALF
) -> str:
    """Draw the number of failures in each slot from `first` on, groups stacked."""
    rows = math.ceil(len(groups) / (2 if width > NARROW else 1))
    with draw_chart("Failures over time", width, 2.4 + 0.18 * rows) as (drawing, axes):
        slots = max(len(counts) for _, counts in groups)
        times = [first + step * number for number in range(slots)]
        bottom = [0] * slots
        for number, (_, counts) in enumerate(groups):
            color = GROUPS[number] if number < len(GROUPS) else MUTED
            axes.bar(
                times, counts, step * 0.86, bottom, align="edge", color=color, label=f"{number}"
            )
            bottom = [low + more for low, more in zip(bottom, counts, strict=True)]
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        _set_moments(axes, first, first + step * slots, _MAX_TICKS[width])
        legend = axes.legend(
            loc="lower left",
            ncols=2 if width > NARROW else 1,
            fontsize=8.5,
            bbox_to_anchor=(0, 1.0),
            borderpad=0,
            labelcolor=MUTED,
        )
        # A label that begins with an underscore would be left out, so names are set afterwards.
        for text, (name, _) in zip(legend.get_texts(), groups, strict=True):
            text.set_text(shorten(name, 34))
    return drawing.svg


def draw_path(row: dict[str, Any], width: float = WIDE) -> str:
    """Draw a critical path: each job from the end of the one before, waiting and then running."""
    steps, start = row["steps"], row["began"].timestamp()
    title = f"Critical path of {shorten(row['jid'], 60)}"
    with draw_chart(title, width, 0.5 + 0.4 * len(steps)) as (drawing, axes):
        ready = 0.0
        for number, step in enumerate(steps):
            popped, ended = step["popped"].timestamp() - start, step["ended"].timestamp() - start
            axes.barh(number, popped - ready, 0.34, left=ready, color=WAIT, alpha=0.35, linewidth=0)
            axes.barh(number, ended - popped, 0.34, left=popped, color=RUN, alpha=0.9, linewidth=0)
            ready = ended
        most = max(4, _MAX_TICKS[width] * 2 / 3)
        axes.xaxis.set_major_locator(
            MultipleLocator(next((tick for tick in _STEPS if ready / tick <= most), _STEPS[-1]))
        )
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: format_duration(value)))
        _name_rows(axes, [f"{step['klass']} {step['jid']}" for step in steps], width)
        axes.set_ylim(len(steps) - 0.4, -0.9)
    return drawing.svg


def _height(rows: Sequence[object]) -> float:
    return 0.6 + 0.42 * len(rows)


def _name_rows(axes: Axes, names: Sequence[str], width: float) -> None:
    """Write a name above each row of a chart, so that long ones take nothing of its width."""
    downward = axes.yaxis_inverted()
    for place, name in enumerate(names):
        axes.annotate(
            shorten(name, _MAX_CHARACTERS[width]),
            (0, place),
            (0, 9),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            fontsize=8.5,
            color=INK,
        )
    axes.set(yticks=[])
    if not downward:
        axes.set_ylim(-0.5, len(names) - 0.1)
    axes.grid(True, axis="x")
    axes.grid(False, axis="y")


def _write_beside(axes: Axes, x: float, y: float, text: str, color: str = MUTED) -> None:
    """Write text to the right of a point."""
    axes.annotate(
        text,
        (x, y),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        fontsize=8.5,
        color=color,
    )


def _count_failures(row: dict[str, Any]) -> str:
    retried = f"{row['retried']:,} retried" if row["retried"] else ""
    return ", ".join(filter(None, [f"{row['count']:,}" if row["count"] else "", retried]))


def _add_legend(axes: Axes, height: float) -> None:
    axes.legend(
        loc="upper right",
        ncols=3,
        fontsize=8.5,
        bbox_to_anchor=(1, height),
        borderpad=0,
        columnspacing=1.2,
        handlelength=1.4,
        labelcolor=MUTED,
    )


def _with_breaks(slots: Iterable[Slot], step: int) -> list[tuple[float, Sequence[float] | None]]:
    """Return the quantiles of each slot, and None once wherever slots are missing."""
    points: list[tuple[float, Sequence[float] | None]] = []
    for slot in slots:
        if points and slot.at - points[-1][0] > step * 1.5:
            points.append((points[-1][0] + step, None))
        points.append((slot.at, slot.quantiles))
    return points


def _has_value(points: Sequence[tuple[float, Sequence[float] | None]], index: int) -> bool:
    return 0 <= index < len(points) and points[index][1] is not None


def _set_durations(axis: Axis) -> None:
    """Label round durations on a logarithmic axis, closer together where it is short."""
    low, high = axis.get_view_interval()
    few = sum(low <= tick <= high for tick in _TICKS) < 3
    axis.set_major_locator(FixedLocator(_STEPS if few else _TICKS))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: format_duration(value)))


def _set_moments(axes: Axes, first: float, last: float, most: int) -> None:
    """Label at most about `most` round moments, in UTC, so that each day is named once."""
    span = last - first
    step = next((each for each in _STEPS if each >= 1 and span / each <= most), _STEPS[-1])
    start = math.ceil(first / step) * step
    places = [start + number * step for number in range(int((last - start) // step) + 1)]
    axes.set_xticks(places)
    axes.set_xticklabels(label_moments(places, step))
    axes.set_xlim(first - span * 0.01, last + span * 0.01)


def label_moments(moments: Sequence[float], step: float) -> list[str]:
    """Return labels of a time axis; the day, or year, is on the first label and where it changes.

    Args:
        moments: Seconds since the epoch, `step` apart.
        step: Seconds between two of them.
    """
    labels, before = [], ""
    for moment in moments:
        time = datetime.fromtimestamp(moment, UTC)
        if step < _DAY:
            clock = "%H:%M:%S" if step < 60 else "%H:%M"
            upper, lower = time.strftime(clock), f"{time.day} {time:%b}"
        else:
            upper, lower = f"{time.day} {time:%b}", str(time.year)
        labels.append(f"{upper}\n{lower}" if lower != before else upper)
        before = lower
    return labels
