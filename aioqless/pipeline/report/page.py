"""The page, of numbers and charts: one file that needs nothing else."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from aioqless.pipeline.report.charts import WEEK, bands, failures, flow, histogram, klasses, path, spelled, week
from aioqless.pipeline.report.gathered import Gathered
from aioqless.pipeline.report.theme import RUN, WAIT, css

SLOWEST: Final = 12
QUANTILES: Final = ("p50", "p90", "p95", "p99")


def page(report: Gathered, now: datetime | None = None) -> str:
    """The report as HTML."""
    loader = PackageLoader("aioqless.pipeline.report", ".")
    environment = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
    environment.filters |= {"spelled": spelled, "number": _number, "moment": _moment}
    slowest = sorted((row for row in report.klasses if "run" in row), key=lambda row: -row["run"]["p95"])[:SLOWEST]
    failed = [row for row in report.failures if row["count"] or row["retried"]]
    drawn = {
        "wait": _times(report, "wait", WAIT),
        "run": _times(report, "run", RUN),
        "flow": flow(report.flow, report.width) if report.flow else "",
        "week": week(report.week),
        "klasses": klasses(slowest) if slowest else "",
        "failures": failures(failed) if failed else "",
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
    drawn = {"histogram": histogram(report.histograms[kind], colour, marks)}
    return drawn | ({"bands": bands(report.bands[kind], colour, report.width)} if len(report.bands[kind]) > 1 else {})


def _busiest(report: Gathered) -> list[tuple[str, int]]:
    """The hours of the week in which most was done."""
    hours = [(f"{WEEK[day]} {hour}:00", many) for day, row in enumerate(report.week) for hour, many in enumerate(row) if many]
    return sorted(hours, key=lambda each: -each[1])[:5]


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}"


def _moment(value: Any) -> str:
    return f"{value:%Y-%m-%d %H:%M:%S}"
