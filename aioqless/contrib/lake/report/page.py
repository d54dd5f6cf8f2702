"""The page, of numbers and charts: one file that needs nothing else."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from aioqless.contrib.lake.report.charts import (
    WEEKDAYS,
    draw_failures,
    draw_flow,
    draw_histogram,
    draw_klasses,
    draw_path,
    draw_quantiles,
    draw_trend,
    draw_week,
    format_duration,
)
from aioqless.contrib.lake.report.report_data import Report, count_by_slot, day_moment
from aioqless.contrib.lake.report.theme import GROUPS, HALF, NARROW, RUN, WAIT, WIDE, css
from aioqless.contrib.lake.statistics import Period

_AGAIN: Final = ("retried", "released", "timed_out", "lost")
_TREND_HOURS: Final = (1, 3, 6, 12, 24, 7 * 24, 28 * 24)
_TREND_SLOTS: Final = 72
_LONGEST_NAME: Final = 40  # characters in a table; longer names unfold
_KINDS: Final = {
    "wait": ("Wait time", "From the time a job became available until a worker began it.", WAIT),
    "run": ("Run time", "From the time a worker began a job until it completed.", RUN),
}


def render(report: Report, now: datetime | None = None) -> str:
    """Return the report as HTML."""
    environment = Environment(
        loader=PackageLoader("aioqless.contrib.lake.report", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {
        "duration": format_duration,
        "number": _format_number,
        "moment": _format_moment,
        "day": _format_day,
    }
    environment.globals |= {"change": format_change, "longest_name": _LONGEST_NAME}
    return environment.get_template("page.html").render(
        report=report,
        charts=_draw(report),
        tiles=_tiles(report),
        kinds=_KINDS,
        css=css(),
        now=now or datetime.now(UTC),
        busiest=_busiest_hours(report),
    )


def format_change(value: float | None, before: float | None) -> str:
    """Return by how much a value differs from the one before: `+12 %`, or `new`."""
    if not before or value is None:
        return "new" if value else ""
    change = value / before - 1
    if abs(change) < 0.005:
        return "±0 %"
    if change >= 9.995:
        return f"\N{MULTIPLICATION SIGN}{value / before:,.0f}"
    return f"{change:+.0%}".replace("%", " %").replace("-", "\u2212")


def _draw(report: Report) -> dict[str, Any]:
    """Return each chart in two widths, of which the page shows the one that suits the window."""
    failed = [row for row in report.failures if row["count"]]
    return {
        **{kind: _draw_times(report, kind) for kind in _KINDS},
        "flow": _both(WIDE, lambda width: draw_flow(report.flow, report.width, width))
        if report.flow
        else "",
        "week": _both(HALF, lambda width: draw_week(report.week, width)),
        "klasses": _both(WIDE, lambda width: draw_klasses(report.klasses, width))
        if report.klasses
        else "",
        "failures": _both(HALF, lambda width: draw_failures(report.failures, width))
        if report.failures
        else "",
        "trend": _draw_trend(report, failed) if failed else "",
        "paths": [_draw_path(row) for row in report.paths],
    }


def _both(wide: float, draw: Callable[[float], str]) -> Markup:
    """Return a chart for wide windows and one for phones. It escapes all names itself."""
    size = "chart" if wide == WIDE else "chart half"
    return Markup(
        f'<div class="{size}">{draw(wide)}</div><div class="chart narrow">{draw(NARROW)}</div>'
    )


def _draw_times(report: Report, kind: str) -> dict[str, Any]:
    numbers = report.total.get(kind)
    if not numbers or not report.histograms.get(kind):
        return {}
    title, _, color = _KINDS[kind]
    marks = {name: numbers[name] for name in ("p50", "p95", "p99")}
    bars, slots = report.histograms[kind], report.slots.get(kind, [])
    return {
        "histogram": _both(
            HALF, lambda width: draw_histogram(bars, color, marks, f"{title}, distribution", width)
        ),
        "over_time": _both(
            HALF,
            lambda width: draw_quantiles(slots, color, report.width, f"{title} over time", width),
        )
        if len(slots) > 1
        else "",
    }


def _draw_path(row: dict[str, Any]) -> Markup:
    return _both(WIDE, lambda width: draw_path(row, width))


def _draw_trend(report: Report, failed: list[dict[str, Any]]) -> Markup:
    """Draw the groups that failed most over the days on which something ended."""
    days = [each["date"] for row in failed for each in row["days"]]
    moments = [datetime.fromtimestamp(row["at"], UTC).date() for row in report.flow]
    shown = Period(min([*days, *moments]), max([*days, *moments]))
    length = (shown.last - shown.first + timedelta(days=1)).days * 24
    hours = next((each for each in _TREND_HOURS if length / each <= _TREND_SLOTS), _TREND_HOURS[-1])
    counts = [count_by_slot(row["days"], shown, hours) for row in failed]
    named = [
        (row["failure_group"], slots)
        for row, slots in zip(failed[: len(GROUPS)], counts, strict=False)
    ]
    if others := counts[len(GROUPS) :]:
        named.append(("others", [sum(slot) for slot in zip(*others, strict=True)]))
    first = day_moment(shown.first)
    return _both(HALF, lambda width: draw_trend(named, first, hours * 3600, width))


def _tiles(report: Report) -> list[dict[str, Any]]:
    """Return the numbers at the top, each with its change since the period before."""
    now, before = report.total, report.before or {}

    def tile(name: str, of: Callable[[dict[str, Any]], Any], show: Callable[[Any], str]) -> Any:
        value = of(now)
        change = format_change(value, of(before)) if before else ""
        return {"name": name, "text": show(value), "change": change, "bad": False}

    tiles = [
        tile("Runs", lambda row: row["runs"], _format_number),
        tile("Completed", lambda row: row["completed"] + row["advanced"], _format_number),
        tile("Failed", lambda row: row["failed"], _format_number) | {"bad": now["failed"] > 0},
        tile("Ran again", lambda row: sum(row[name] for name in _AGAIN), _format_number),
    ]
    for kind, rank, label in (
        ("wait", "p50", "Wait, median"),
        ("wait", "p95", "Wait, p95"),
        ("run", "p50", "Run, median"),
        ("run", "p95", "Run, p95"),
    ):
        if kind in now:
            tiles.append(tile(label, _times_of(kind, rank), format_duration))
    return tiles


def _times_of(kind: str, rank: str) -> Callable[[dict[str, Any]], Any]:
    return lambda row: row[kind][rank] if kind in row else None


def _busiest_hours(report: Report) -> list[tuple[str, int]]:
    """Return the hours of the week in which most runs ended."""
    hours = [
        (f"{WEEKDAYS[day]} {hour}:00", many)
        for day, row in enumerate(report.week)
        for hour, many in enumerate(row)
        if many
    ]
    return sorted(hours, key=lambda each: -each[1])[:5]


def _format_number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}"


def _format_moment(value: datetime) -> str:
    return f"{value:%Y-%m-%d %H:%M:%S}"


def _format_day(value: date) -> str:
    return f"{value.day} {value:%B %Y}"
