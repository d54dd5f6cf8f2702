"""The charts of the report: each function takes plain numbers and returns a Vega-Lite chart.

Colors are those of the page's style sheet, so that a chart follows it from light to dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

Chart: TypeAlias = dict[str, Any]

# Each color with its value in light and in dark mode.
COLORS: Final = {
    "ink": ("#1c2430", "#e8eaee"),
    "muted": ("#5d6777", "#9aa4b5"),
    "grid": ("#e7eaef", "#2a313c"),
    "wait": ("#d9730d", "#f2a65a"),
    "run": ("#2f6fde", "#77a9ff"),
    "done": ("#12897b", "#4cc9b5"),
    "fail": ("#c8324a", "#ff7d8e"),
    "group1": ("#c8324a", "#ff7d8e"),
    "group2": ("#e0a100", "#ffd166"),
    "group3": ("#6b4fd8", "#a996ff"),
    "group4": ("#0f8aa8", "#5fd0ea"),
    "group5": ("#5f8a1d", "#a9d65c"),
}
INK, MUTED, GRID, WAIT, RUN, DONE, FAIL, *GROUPS = (f"var(--{name})" for name in COLORS)
WEEKDAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY: Final = 86_400
_UNITS: Final = ((_DAY, "d"), (3600, "h"), (60, "min"), (1, "s"), (0.001, "ms"), (1e-6, "µs"))
# Round durations, for logarithmic axes.
_TICKS: Final = (
    *(1e-5, 1e-4, 0.001, 0.01, 0.1, 1, 10, 60, 600, 3600, 36_000),
    *(_DAY, 10 * _DAY, 100 * _DAY),
)
_RATES: Final = {"per day": _DAY, "per hour": 3600, "per minute": 60, "per second": 1}
_LEAST: Final = 1e-5  # seconds; logarithmic axes have no zero
_LONGEST_LABEL: Final = 30  # characters, of which the end is shown, where most names differ
_LABEL: Final = (
    f"length(datum.label) > {_LONGEST_LABEL} ? '…' + slice(datum.label, {1 - _LONGEST_LABEL})"
    " : datum.label"
)
_FORMAT: Final = (
    "utcseconds(datum.value) ? '%H:%M:%S' : "
    "utchours(datum.value) || utcminutes(datum.value) ? '%H:%M' : '%-d %b'"
)
_CONFIG: Final = {
    "background": "transparent",
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "mark": {"invalid": "break-paths-filter-domains"},
    "axis": {
        **dict.fromkeys(("gridColor", "domainColor", "tickColor"), GRID),
        **dict.fromkeys(("labelColor", "titleColor"), MUTED),
        "titleFontWeight": "normal",
    },
    "legend": {
        "labelColor": MUTED,
        "title": None,
        "orient": "top",
        "columns": 3,
        "labelLimit": 200,
    },
    "text": {"color": INK},
}
_NAMES: Final = {
    "field": "name",
    "type": "nominal",
    "sort": None,
    "title": None,
    "axis": {"labelExpr": _LABEL, "labelLimit": 190},
}


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


def draw_histogram(
    bars: Sequence[tuple[float, float, float]], color: str, marks: Mapping[str, float], title: str
) -> Chart:
    """Draw the distribution of durations on a logarithmic axis, with quantiles marked."""
    least = min((low for low, _, _ in bars if low > 0), default=1e-4)
    rows: list[dict[str, Any]] = [
        {"low": low or least / 10 ** (1 / 8), "high": high, "jobs": many}
        | {"from": format_duration(low), "to": format_duration(high)}
        for low, high, many in bars
    ]
    places = [max(seconds, least / 1.2) for seconds in marks.values()]
    x = _durations("low", [*(row["low"] for row in rows), *places, *(row["high"] for row in rows)])
    named: list[Chart] = []
    for number, ((name, seconds), place) in enumerate(zip(marks.items(), places, strict=True)):
        row = {"at": place, "name": f"{name} {format_duration(seconds)}"}
        text = {"type": "text", "align": "left", "dx": 4, "baseline": "top", "color": INK}
        at = {**x, "field": "at"}
        of_text = {"x": at, "y": {"value": 13 * number}, "text": {"field": "name"}}
        line = {"type": "rule", "color": INK, "strokeDash": [3, 3]}
        named.append({"data": {"values": [row]}, "mark": line, "encoding": {"x": at}})
        named.append({"data": {"values": [row]}, "mark": text, "encoding": of_text})
    return _layers(
        title,
        rows,
        {
            "mark": {"type": "bar", "color": color, "opacity": 0.85, "binSpacing": 1},
            "encoding": {
                "x": x,
                "x2": {"field": "high"},
                "y": _numbers("jobs"),
                "y2": {"datum": 0},
                "tooltip": _shown("from", "to", "jobs"),
            },
        },
        *named,
    )


def draw_quantiles(slots: Sequence[Slot], color: str, step: int, title: str) -> Chart:
    """Draw the median and the bands up to the 90th and 99th percentile over time.

    Nothing is drawn between slots that others without a value separate.
    """
    rows: list[dict[str, Any]] = []
    for slot in slots:
        if rows and slot.at - rows[-1]["at"] > step * 1.5:
            rows.append({"at": rows[-1]["at"] + step})
        names = zip(("median", "p90", "p99"), slot.quantiles, strict=True)
        row = {name: max(value, _LEAST) for name, value in names}
        texts = {f"{name} ": format_duration(value) for name, value in row.items()}
        rows.append({"at": slot.at, **row, **texts, "jobs": slot.count})
    rows = [{**row, "middle": _millis(row["at"] + step / 2)} for row in rows]
    values = [row[name] for row in rows if "p99" in row for name in ("median", "p99")]
    bands = [
        {
            "mark": {"type": "area", "color": color, "opacity": opacity},
            "encoding": {"y": _durations("median", values), "y2": {"field": name}},
        }
        for name, opacity in (("p99", 0.16), ("p90", 0.32))
    ]
    shown = _shown("time", "median ", "p90 ", "p99 ", "jobs")
    line = {
        "mark": {"type": "line", "color": color, "point": {"color": color, "size": 16}},
        "encoding": {"y": _durations("median", values), "tooltip": shown},
    }
    chart = _layers(title, _with_times(rows), *bands, line)
    return {**chart, "encoding": {"x": _moments("middle")}}


def draw_flow(rows: Sequence[dict[str, Any]], step: int) -> list[Chart]:
    """Draw the runs that ended over time, and the jobs that waited and ran."""
    unit, scale = next(
        (name, seconds / step) for name, seconds in _RATES.items() if step >= seconds
    )
    series = (("completed", DONE), ("retried", WAIT), ("failed", FAIL))
    ended = [(name, [row[name] * scale for row in rows]) for name, _ in series]
    levels = [*rows, {**rows[-1], "at": rows[-1]["at"] + step}]
    lines = [
        {"middle": _millis(row["at"]), "at": row["at"], "name": name, "jobs": row[name]}
        for name in ("waiting", "running")
        for row in levels
    ]
    below = {
        "mark": {"type": "line", "interpolate": "step-after", "point": {"opacity": 0, "size": 90}},
        "encoding": {
            "x": _moments("middle"),
            "y": _numbers("jobs", "jobs at a time, mean"),
            "color": _colors({"waiting": WAIT, "running": RUN}),
            "tooltip": _shown("time", "name", "jobs"),
        },
    }
    times = [row["at"] for row in rows]
    return [
        _stacked("Runs that ended", ended, dict(series), times, step, f"runs ended {unit}"),
        _layers("Jobs that waited and ran", _with_times(lines), below, height=140),
    ]


def draw_week(hours: Sequence[Sequence[int]]) -> Chart:
    """Draw how many runs ended in each hour of the week."""
    rows = [
        {"day": WEEKDAYS[day], "hour": f"{hour}:00", "runs": many}
        for day, row in enumerate(hours)
        for hour, many in enumerate(row)
    ]
    axis = {
        "labelExpr": "indexof(['0:00','6:00','12:00','18:00'], datum.label) < 0 ? '' : datum.label"
    }
    encoding = {
        "x": {"field": "hour", "sort": None, "title": None, "axis": {**axis, "labelAngle": 0}},
        "y": {"field": "day", "sort": None, "title": None},
        "opacity": {
            "field": "runs",
            "type": "quantitative",
            "scale": {"type": "sqrt", "range": [0.05, 1]},
            "legend": None,
        },
        "tooltip": _shown("day", "hour", "runs"),
    }
    mark = {"type": "rect", "color": RUN, "cornerRadius": 3, "stroke": "transparent"}
    return _layers("Runs by weekday and hour", rows, {"mark": mark, "encoding": encoding})


def draw_klasses(rows: Sequence[dict[str, Any]]) -> Chart:
    """Draw the run times of the slowest classes: median to p95, and the longest."""
    names = ("p50", "p95", "most")
    values = [
        {name: max(row["run"][name], _LEAST) for name in names}
        | {"name": row["klass"], "filtered": True}
        | {f"{name} ": format_duration(row["run"][name]) for name in names}
        for row in rows
    ]
    x = _durations("p50", [row[name] for row in values for name in names])
    shown = _shown("name", "p50 ", "p95 ", "most ")

    def mark(end: str, **options: Any) -> Chart:
        encoding = {"x": x, "x2": {"field": end}, "y": _NAMES, "tooltip": shown}
        return {"mark": {"type": "rule", "color": RUN, **options}, "encoding": encoding}

    return _layers(
        "Run times of the slowest classes",
        values,
        mark("most", opacity=0.35),
        mark("p95", opacity=0.55, strokeWidth=8),
        {
            "mark": {"type": "point", "filled": True, "color": RUN, "size": 60, "opacity": 1},
            "encoding": {"x": x, "y": _NAMES, "tooltip": shown},
        },
        height=None,
    )


def draw_failures(rows: Sequence[dict[str, Any]]) -> Chart:
    """Draw the groups that failed most, each in the color that the trend has for it."""
    bars = [
        {"name": row["failure_group"], "filtered": True, "how": how, "runs": end - start}
        | {"start": start, "end": end}
        | {"color": GROUPS[n] if n < len(GROUPS) else MUTED, "opacity": opacity}
        for n, row in enumerate(rows)
        for how, start, end, opacity in (
            ("failed", 0, row["count"], 1),
            ("retried", row["count"], row["count"] + row["retried"], 0.35),
        )
    ]
    encoding = {
        "x": _numbers("start"),
        "x2": {"field": "end"},
        "y": _NAMES,
        "color": {"field": "color", "scale": None},
        "opacity": {"field": "opacity", "type": "quantitative", "scale": None},
        "tooltip": _shown("name", "how", "runs"),
    }
    return _layers(
        "Failures by group", bars, {"mark": {"type": "bar"}, "encoding": encoding}, height=None
    )


def draw_trend(groups: Sequence[tuple[str, Sequence[int]]], first: float, step: int) -> Chart:
    """Draw the number of failures in each slot from `first` on, groups stacked."""
    slots = max(len(counts) for _, counts in groups)
    times = [first + step * number for number in range(slots)]
    colors = {
        name: GROUPS[number] if number < len(GROUPS) else MUTED
        for number, (name, _) in enumerate(groups)
    }
    return _stacked("Failures over time", groups, colors, times, step, None)


def draw_path(row: dict[str, Any]) -> Chart:
    """Draw a critical path: each job from the end of the one before, waiting and then running."""
    bars: list[dict[str, Any]] = []
    start, ready = row["began"].timestamp(), 0.0
    for step in row["steps"]:
        popped, ended = (step[name].timestamp() - start for name in ("popped", "ended"))
        for how, low, high in (("waiting", ready, popped), ("running", popped, ended)):
            shown = {"how": how, "time": format_duration(high - low)}
            name = f"{step['klass']} {step['jid']}"
            bars.append({"name": name, "start": low, "end": high, **shown})
        ready = ended
    encoding = {
        "x": {**_numbers("start"), "axis": {"labelExpr": "duration(datum.value)", "tickCount": 6}},
        "x2": {"field": "end"},
        "y": _NAMES,
        "color": _colors({"waiting": WAIT, "running": RUN}, "how"),
        "tooltip": _shown("name", "how", "time"),
    }
    mark = {"type": "bar", "opacity": 0.85}
    title = f"Critical path of {row['jid']}"
    return _layers(title, bars, {"mark": mark, "encoding": encoding}, height=None)


def _layers(
    title: str, rows: Iterable[Mapping[str, Any]], *layers: Chart, height: int | None = 180
) -> Chart:
    """Return a chart as wide as its place; without a height, each name has a row of its own."""
    return {
        "description": title,
        "width": "container",
        "height": {"step": 26} if height is None else height,
        "data": {"values": list(rows)},
        "layer": list(layers),
        "config": _CONFIG,
    }


def _stacked(
    title: str,
    series: Sequence[tuple[str, Sequence[float]]],
    colors: Mapping[str, str],
    times: Sequence[float],
    step: int,
    axis: str | None,
) -> Chart:
    """Draw bars of one slot each, the series on top of each other."""
    rows = []
    bottom = [0.0] * len(times)
    for name, counts in series:
        for number, (at, many) in enumerate(zip(times, counts, strict=False)):
            y = bottom[number]
            bottom[number] += many
            moments = {"middle": _millis(at), "until": _millis(at + step * 0.9), "at": at}
            if many:
                rows.append({**moments, "name": name, "runs": many, "y": y, "top": bottom[number]})
    encoding = {
        "x": _moments("middle"),
        "x2": {"field": "until"},
        "y": _numbers("y", axis),
        "y2": {"field": "top"},
        "color": _colors(colors),
        "tooltip": _shown("time", "name", "runs"),
    }
    return _layers(title, _with_times(rows), {"mark": {"type": "bar"}, "encoding": encoding})


def _numbers(field: str, title: str | None = None) -> Chart:
    text = "format(datum.value, datum.value < 10000 ? ',.3~r' : '~s')"
    axis = {"tickCount": 4, "labelExpr": text}
    scale = {"domainMin": 0}
    return {"field": field, "type": "quantitative", "title": title, "axis": axis, "scale": scale}


def _durations(field: str, values: Sequence[float]) -> Chart:
    """Label round durations on a logarithmic axis."""
    low, high = min(values, default=1) / 1.2, max(values, default=1) * 1.2
    ticks = [each for each in _TICKS if low <= each <= high]
    axis = {"labelExpr": "duration(datum.value)", "labelOverlap": True}
    if len(ticks) >= 3:
        axis["values"] = ticks
    scale = {"type": "log", "domain": [low, high], "nice": False, "clamp": True}
    return {"field": field, "type": "quantitative", "title": None, "axis": axis, "scale": scale}


def _moments(field: str) -> Chart:
    axis = {"labelExpr": f"utcFormat(datum.value, {_FORMAT})", "labelOverlap": True, "grid": False}
    scale = {"type": "utc"}
    return {"field": field, "type": "temporal", "title": None, "axis": axis, "scale": scale}


def _colors(colors: Mapping[str, str], field: str = "name") -> Chart:
    return {"field": field, "scale": {"domain": [*colors], "range": [*colors.values()]}}


def _shown(*fields: str) -> list[Chart]:
    """Return what is shown beside the pointer."""
    return [{"field": each, "title": each.strip()} for each in fields]


def _millis(seconds: float) -> int:
    return round(seconds * 1000)


def _with_times(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add the beginning of each row's slot as text."""
    return [
        {**row, "time": f"{datetime.fromtimestamp(row['at'], UTC):%Y-%m-%d %H:%M:%S}"}
        for row in rows
    ]
