"""The page, of numbers and charts: one file that needs nothing else."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from aioqless.contrib.lake.report.charts import (
    COLORS,
    GROUPS,
    RUN,
    WAIT,
    WEEKDAYS,
    Chart,
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
from aioqless.contrib.lake.statistics import Period

_SCRIPTS: Final = ("vega-6.4.0.min.js", "vega-lite-6.5.0.min.js", "page.js")
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
        css=_css(),
        script="\n".join((Path(__file__).parent / name).read_text("utf-8") for name in _SCRIPTS),
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
    """Return each chart, as the page's element and the JSON that its script reads."""
    failed = [row for row in report.failures if row["count"]]
    return {
        **{kind: _draw_times(report, kind) for kind in _KINDS},
        "flow": _place(*draw_flow(report.flow, report.width)) if report.flow else "",
        "week": _place(draw_week(report.week)),
        "klasses": _place(draw_klasses(report.klasses)) if report.klasses else "",
        "failures": _place(draw_failures(report.failures)) if report.failures else "",
        "trend": _draw_trend(report, failed) if failed else "",
        "paths": [_place(draw_path(row)) for row in report.paths],
    }


def _place(*charts: Chart) -> Markup:
    """Return the places of charts, one below the other."""
    place = Markup(
        '<div class="chart" role="img" aria-label="{}"><script type="application/json">{}</script>'
        "</div>"
    )
    return Markup("").join(
        place.format(each["description"], Markup(htmlsafe_json_dumps(each))) for each in charts
    )


def _draw_times(report: Report, kind: str) -> dict[str, Any]:
    numbers = report.total.get(kind)
    if not numbers or not report.histograms.get(kind):
        return {}
    title, _, color = _KINDS[kind]
    marks = {name: numbers[name] for name in ("p50", "p95", "p99")}
    bars, slots = report.histograms[kind], report.slots.get(kind, [])
    over_time = draw_quantiles(slots, color, report.width, f"{title} over time")
    return {
        "histogram": _place(draw_histogram(bars, color, marks, f"{title}, distribution")),
        "over_time": _place(over_time) if len(slots) > 1 else "",
    }


def _css() -> str:
    """Return the colors for the page: light, dark, and as the reader chooses."""
    light, dark = (
        "".join(f"--{name}:{values[index]};" for name, values in COLORS.items()) for index in (0, 1)
    )
    return (
        f":root{{{light}}}@media(prefers-color-scheme:dark){{:root:not(.light){{{dark}}}}}"
        f":root.dark{{{dark}}}"
    )


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
    return _place(draw_trend(named, first, hours * 3600))


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
