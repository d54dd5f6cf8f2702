"""A function for each chart of the report: plain numbers in, SVG out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.patches import BoxStyle, FancyBboxPatch
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, MultipleLocator, NullLocator

from aioqless.contrib.lake.report.theme import (
    DONE,
    FAIL,
    HALF,
    INK,
    MUTED,
    RUN,
    WAIT,
    WIDE,
    bare,
    chart,
)

UNITS: Final = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"), (0.001, "ms"), (1e-6, "µs"))
TICKS: Final = (
    1e-5,
    1e-4,
    0.001,
    0.01,
    0.1,
    1,
    10,
    60,
    600,
    3600,
    36_000,
    86_400,
    864_000,
    8_640_000,
)  # round ones on axes of times
EACH: Final = {"a day": 86_400, "an hour": 3600, "a minute": 60, "a second": 1}
STEPS: Final = (
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600,
    43_200, 86_400, 172_800, 604_800, 2_592_000,
)  # fmt: skip
WEEK: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def spelled(seconds: float | None) -> str:
    """A time as people say it: 1.2 s, 40 ms, 3 h."""
    if seconds is None:
        return "-"
    for width, unit in UNITS:
        if seconds >= width * 0.9995:
            return f"{seconds / width:.3g} {unit}"
    return "0"


def histogram(
    bars: Sequence[tuple[float, float, float]], colour: str, marks: dict[str, float]
) -> str:
    """How many took how long, on a logarithmic axis, with the quantiles marked."""
    with chart(HALF, 2.5) as (drawn, axes):
        least = min((low for low, _, _ in bars if low > 0), default=1e-4)
        for low, high, many in bars:
            left = math.log10(low or least / 10 ** (1 / 8))
            axes.bar(
                left,
                many,
                width=(math.log10(high) - left) * 0.88,
                align="edge",
                color=colour,
                alpha=0.85,
                linewidth=0,
            )
        top = max((many for _, _, many in bars), default=1)
        for level, (name, seconds) in enumerate(
            reversed(marks.items())
        ):  # what is further right is lower, so no line goes through a text
            place, height = math.log10(max(seconds, least / 1.2)), top * (1.1 + 0.13 * level)
            axes.plot([place, place], [0, height], color=INK, linewidth=0.9, dashes=(3, 3))
            _beside(axes, place, height, f"{name} {spelled(seconds)}", INK)
        left, right = axes.get_xlim()
        axes.set_xticks(
            places := [
                math.log10(tick) for tick in TICKS if left <= math.log10(tick) <= right + 0.3
            ]
        )
        axes.set_xticklabels([spelled(10**place) for place in places])
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.set(
            xlim=(left, right + 0.12 * (right - left)), ylim=(0, top * (1.2 + 0.13 * len(marks)))
        )
    return drawn.svg


def bands(points: Sequence[tuple[float, int, list[float]]], colour: str, width: int) -> str:
    """The median and the bands up to the 90th and 99th of a hundred, over time."""
    with chart(HALF, 2.3) as (drawn, axes):
        times = [at + width / 2 for at, _, _ in points]
        low, mid, high = (
            [max(quantiles[index], 1e-5) for _, _, quantiles in points] for index in range(3)
        )
        axes.fill_between(
            times, low, high, color=colour, alpha=0.16, linewidth=0, label="to the 99th"
        )
        axes.fill_between(
            times, low, mid, color=colour, alpha=0.32, linewidth=0, label="to the 90th"
        )
        axes.plot(
            times,
            low,
            color=colour,
            linewidth=1.8,
            label="median",
            marker="o" if len(points) < 8 else "",
            markersize=4,
        )
        axes.set_yscale("log")
        _round(axes.yaxis)
        _moments(axes, times, 6)
        axes.legend(
            loc="upper right",
            ncols=3,
            fontsize=8.5,
            bbox_to_anchor=(1, 1.16),
            borderpad=0,
            labelcolor=MUTED,
        )
    return drawn.svg


def flow(rows: Sequence[dict[str, Any]], width: int) -> str:
    """What was done, and beneath it what waited and ran, over time."""
    with chart(WIDE, 4.0, 2, sharex=True) as (drawn, (above, below)):
        times = [row["at"] for row in rows]
        unit, scale = next(
            (name, seconds / width) for name, seconds in EACH.items() if width >= seconds
        )
        base = [0.0] * len(rows)
        for name, colour in (("completed", DONE), ("retried", WAIT), ("failed", FAIL)):
            counts = [row[name] * scale for row in rows]
            above.bar(
                times,
                counts,
                width=width * 0.9,
                align="edge",
                bottom=base,
                color=colour,
                linewidth=0,
                label=name,
            )
            base = [low + more for low, more in zip(base, counts, strict=True)]
        above.set_title(f"runs that ended, {unit}", loc="left", fontsize=9, color=MUTED)
        for name, colour in (("waiting", WAIT), ("running", RUN)):
            below.step(
                [*times, times[-1] + width],
                [*(row[name] for row in rows), rows[-1][name]],
                where="post",
                color=colour,
                linewidth=1.5,
                label=name,
            )
        below.set_title("jobs at a time, on average", loc="left", fontsize=9, color=MUTED)
        for axes in (above, below):
            axes.yaxis.set_major_locator(MaxNLocator(4))
            axes.set_ylim(bottom=0)
            axes.legend(
                loc="upper right",
                ncols=3,
                fontsize=8.5,
                bbox_to_anchor=(1, 1.26),
                borderpad=0,
                labelcolor=MUTED,
            )
        _moments(below, [*times, times[-1] + width])
    return drawn.svg


def week(hours: Sequence[Sequence[int]]) -> str:
    """How much was done in each hour of the week."""
    most = max(max(day) for day in hours) or 1
    with chart(HALF, 2.4) as (drawn, axes):
        for number, day in enumerate(hours):
            for hour, many in enumerate(day):
                shade, corners = (
                    0.05 + 0.95 * math.sqrt(many / most),
                    BoxStyle.Round(pad=0, rounding_size=0.16),
                )
                box = FancyBboxPatch(
                    (hour + 0.08, number + 0.08),
                    0.84,
                    0.84,
                    boxstyle=corners,
                    color=RUN,
                    alpha=shade,
                    linewidth=0,
                )
                axes.add_patch(box)
        axes.set(
            xlim=(0, 24),
            ylim=(7, 0),
            xticks=[hour + 0.5 for hour in range(0, 24, 3)],
            yticks=[number + 0.5 for number in range(7)],
        )
        axes.set_xticklabels([f"{hour}:00" for hour in range(0, 24, 3)])
        axes.set_yticklabels(WEEK)
        bare(axes)
    return drawn.svg


def klasses(rows: Sequence[dict[str, Any]]) -> str:
    """The slowest klasses: from the median to the 95th of a hundred, and the most."""
    rows = rows[::-1]
    with chart(WIDE, 0.7 + 0.34 * len(rows)) as (drawn, axes):
        for number, row in enumerate(rows):
            low, high, most = (max(row["run"][name], 1e-5) for name in ("p50", "p95", "most"))
            axes.plot([low, most], [number, number], color=RUN, alpha=0.25, linewidth=1.6)
            axes.plot(
                [low, high],
                [number, number],
                color=RUN,
                alpha=0.55,
                linewidth=8,
                solid_capstyle="butt",
            )
            axes.plot([low], [number], "o", color=RUN, markersize=7)
            _beside(axes, most, number, spelled(row["run"]["most"]))
        axes.set_xscale("log")
        axes.margins(x=0.12)
        _round(axes.xaxis)
        axes.set(yticks=range(len(rows)), ylim=(-0.6, len(rows) - 0.4))
        axes.set_yticklabels([_short(row["klass"], 60) for row in rows], color=INK)
        axes.grid(True, axis="x")
        axes.grid(False, axis="y")
    return drawn.svg


def failures(rows: Sequence[dict[str, Any]]) -> str:
    """The groups that failed most, and what was retried in the end."""
    rows = rows[::-1]
    with chart(HALF, 0.6 + 0.32 * len(rows)) as (drawn, axes):
        places = range(len(rows))
        axes.barh(
            places,
            [row["count"] for row in rows],
            color=FAIL,
            alpha=0.9,
            height=0.56,
            linewidth=0,
            label="failed",
        )
        axes.barh(
            places,
            [row["retried"] for row in rows],
            left=[row["count"] for row in rows],
            color=WAIT,
            alpha=0.55,
            height=0.56,
            label="retried",
        )
        for place, row in zip(places, rows, strict=True):
            _beside(axes, row["count"] + row["retried"], place, _counted(row))
        axes.set(yticks=list(places), ylim=(-0.6, len(rows) - 0.4))
        axes.set_yticklabels([_short(row["failure_group"]) for row in rows], color=INK)
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.margins(x=0.16)
        axes.grid(True, axis="x")
        axes.grid(False, axis="y")
    return drawn.svg


def trend(groups: Sequence[tuple[str, Sequence[int]]], first: float, width: int) -> str:
    """How many failed in each slot from `first` on, the group that failed most beneath the
    others."""
    with chart(HALF, 2.6) as (drawn, axes):
        slots = max(len(counts) for _, counts in groups)
        times, base = [first + width * number for number in range(slots)], [0] * slots
        for number, (_, counts) in enumerate(groups):
            shade = 0.95 - 0.75 * number / len(groups)
            axes.bar(
                times,
                counts,
                width=width * 0.86,
                align="edge",
                bottom=base,
                color=FAIL,
                alpha=shade,
                linewidth=0,
                label=f"{number}",
            )
            base = [low + more for low, more in zip(base, counts, strict=True)]
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.set_xlim(first, first + width * slots)
        _moments(axes, [first, first + width * slots])
        legend = axes.legend(
            loc="lower left",
            ncols=2,
            fontsize=8.5,
            bbox_to_anchor=(0, 1.0),
            borderpad=0,
            labelcolor=MUTED,
        )
        for text, (name, _) in zip(
            legend.get_texts(), groups, strict=True
        ):  # a label that begins with _ would be left out
            text.set_text(_short(name))
    return drawn.svg


def path(row: dict[str, Any]) -> str:
    """A critical path as a cascade: each job from when the one before was done, what of it was
    waiting and what work."""
    steps, start = row["steps"], row["began"].timestamp()
    with chart(WIDE, 0.55 + 0.27 * len(steps)) as (drawn, axes):
        ready = 0.0
        for number, step in enumerate(steps):
            popped, ended = step["popped"].timestamp() - start, step["ended"].timestamp() - start
            axes.barh(
                number, popped - ready, left=ready, color=WAIT, alpha=0.35, height=0.5, linewidth=0
            )
            axes.barh(
                number, ended - popped, left=popped, color=RUN, alpha=0.9, height=0.5, linewidth=0
            )
            ready = ended
        axes.set(yticks=range(len(steps)), ylim=(len(steps) - 0.4, -0.6))
        axes.set_yticklabels(
            [f"{_short(step['klass'])} {_short(step['jid'])}" for step in steps], color=INK
        )
        axes.xaxis.set_major_locator(
            MultipleLocator(next((tick for tick in STEPS if ready / tick <= 8), STEPS[-1]))
        )
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: spelled(value)))
        axes.grid(True, axis="x")
        axes.grid(False, axis="y")
    return drawn.svg


def _beside(axes: Axes, x: float, y: float, text: str, colour: str = MUTED) -> None:
    """Text to the right of a point."""
    axes.annotate(
        text,
        (x, y),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        fontsize=8.5,
        color=colour,
    )


def _counted(row: dict[str, Any]) -> str:
    retried = f"{row['retried']:,} retried" if row["retried"] else ""
    return ", ".join(filter(None, [f"{row['count']:,}" if row["count"] else "", retried]))


def _short(name: str, most: int = 34) -> str:
    """The end of a name, where most differ, on one line."""
    line = "".join(each if each.isprintable() else " " for each in name)
    return line if len(line) <= most else f"…{line[1 - most :]}"


def _round(axis: Axis) -> None:
    """Round times on a logarithmic axis, closer together where it is short."""
    low, high = axis.get_view_interval()
    few = sum(low <= tick <= high for tick in TICKS) < 3
    axis.set_major_locator(FixedLocator(STEPS if few else TICKS))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: spelled(value)))


def _moments(axes: Axes, times: Sequence[float], most: int = 9) -> None:
    """Clock times or days on the axis, in UTC, at round places; about `most` of them."""
    span = times[-1] - times[0] if times else 0
    step = next((step for step in STEPS if step >= 1 and span / step <= most), STEPS[-1])
    pattern = "%H:%M:%S" if step < 60 else "%H:%M" if step < 86_400 else "%-d %b"
    first = math.ceil(times[0] / step) * step if times else 0
    axes.set_xticks([first + number * step for number in range(int(span // step) + 1)])
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda value, _: datetime.fromtimestamp(value, UTC).strftime(pattern))
    )
    axes.margins(x=0.01)
