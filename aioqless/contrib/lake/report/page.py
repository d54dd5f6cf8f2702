"""The page, of numbers and charts: one file that needs nothing else."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from aioqless.contrib.lake.report.charts import (
    WEEK,
    bands,
    failures,
    flow,
    histogram,
    klasses,
    path,
    spelled,
    trend,
    week,
)
from aioqless.contrib.lake.report.report_data import SHORT, Gathered
from aioqless.contrib.lake.report.theme import RUN, WAIT, css
from aioqless.contrib.lake.tables.columns import DAY

SLOWEST: Final = 12
QUANTILES: Final = ("p50", "p90", "p95", "p99")
TOLD_APART: Final = 5  # groups in the trend of failures; the others are one


def page(report: Gathered, now: datetime | None = None) -> str:
    """The report as HTML."""
    loader = PackageLoader("aioqless.contrib.lake.report", ".")
    environment = Environment(
        loader=loader,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {"spelled": spelled, "number": _number, "moment": _moment}
    slowest = sorted(
        (row for row in report.klasses if "run" in row), key=lambda row: -row["run"]["p95"]
    )[:SLOWEST]
    failed = [row for row in report.failures if row["count"] or row["retried"]]
    drawn = {
        "wait": _times(report, "wait", WAIT),
        "run": _times(report, "run", RUN),
        "flow": flow(report.flow, report.width) if report.flow else "",
        "week": week(report.week),
        "klasses": klasses(slowest) if slowest else "",
        "failures": failures(failed) if failed else "",
        "trend": _trend(report, [row for row in failed if row["count"]]),
        "paths": [path(row) for row in report.paths],
    }
    return environment.get_template("page.html").render(
        report=report, drawn=drawn, slowest=slowest, failed=failed, css=css(), now=now or datetime.now(UTC), quantiles=QUANTILES,
        busiest=_busiest(report), again=sum(report.total.get(name, 0) for name in ("retried", "released", "timed_out", "lost")),
    )  # fmt: skip


def _times(report: Gathered, kind: str, colour: str) -> dict[str, str]:
    numbers = report.total.get(kind)
    if not numbers or not report.histograms[kind]:
        return {}
    marks = {"p50": numbers["p50"], "p95": numbers["p95"], "p99": numbers["p99"]}
    over_time = report.bands[kind]
    return {
        "histogram": histogram(report.histograms[kind], colour, marks),
        "bands": bands(over_time, colour, report.width)
        if len(over_time) > 1
        else "",  # one moment is no course
    }


def _trend(report: Gathered, failed: list[dict[str, Any]]) -> str:
    """Failures by the hour where it is few days, else by the day."""
    if not failed:
        return ""
    hourly = (report.last - report.first).days < SHORT
    counts = [_over_time(row["days"], report.first, report.last, hourly) for row in failed]
    named = [
        (row["failure_group"], each) for row, each in zip(failed[:TOLD_APART], counts, strict=False)
    ]
    if others := counts[TOLD_APART:]:
        named.append((f"{len(others)} others", [sum(slot) for slot in zip(*others, strict=True)]))
    midnight = datetime(
        report.first.year, report.first.month, report.first.day, tzinfo=UTC
    ).timestamp()
    return trend(named, midnight, DAY // 24 if hourly else DAY)


def _over_time(days: list[dict[str, Any]], first: date, last: date, hourly: bool) -> list[int]:
    """How many in each hour or day from the first to the last; a group has a row for each of its
    queues and days."""
    hours = [0] * 24 * ((last - first).days + 1)
    for day in days:
        for hour, many in enumerate(day["by_hour"]):
            hours[24 * (day["date"] - first).days + hour] += many
    return hours if hourly else [sum(hours[at : at + 24]) for at in range(0, len(hours), 24)]


def _busiest(report: Gathered) -> list[tuple[str, int]]:
    """The hours of the week in which most was done."""
    hours = [
        (f"{WEEK[day]} {hour}:00", many)
        for day, row in enumerate(report.week)
        for hour, many in enumerate(row)
        if many
    ]
    return sorted(hours, key=lambda each: -each[1])[:5]


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}"


def _moment(value: Any) -> str:
    return f"{value:%Y-%m-%d %H:%M:%S}"
