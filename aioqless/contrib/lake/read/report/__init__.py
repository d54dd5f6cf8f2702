"""The report: one HTML file with everything in it, to be looked at, sent and kept.

Its numbers are the queries of `sql/report`.

page.html    the page: tiles, tables and the places of charts
charts.json  what each chart draws of the rows of a query, in Vega-Lite's terms
page.js      draws the charts by Vega, which is in the page
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.open_table import whole_of
from aioqless.contrib.lake.period import Period
from aioqless.contrib.lake.read.database import fetch, open_lake_database, read_sql
from aioqless.contrib.lake.read.statistics import add_up
from aioqless.errors import require_extra

with require_extra("lake-read"):
    from jinja2 import Environment, PackageLoader, StrictUndefined

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PATH_DAYS: Final = 30  # how many days back a path is followed
_FINEST: Final = 60  # seconds of a slot that the rows of throughput have
_QUERIES: Final = ("ended", "levels", "week", "failures", "trend", "paths")
_MOMENTS: Final = {"wait": "popped", "run": "ended"}  # by which a time belongs to a slot
_AGAIN: Final = ("retried", "released", "timed_out", "lost")
_SCRIPTS: Final = ("vega-6.4.0.min.js", "vega-lite-6.5.0.min.js", "page.js")
_UNITS: Final = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"), (0.001, "ms"), (1e-6, "µs"))


@dataclass
class Report:
    """What the page shows; the rows of each query are by its name."""

    period: Period
    namespaces: list[str]
    queue: str | None
    width: int  # seconds of a slot
    total: dict[str, Any]
    before: dict[str, Any] | None  # the total of the period before
    groups: list[dict[str, Any]] = field(default_factory=list)  # queues, or the classes of one
    klasses: list[dict[str, Any]] = field(default_factory=list)  # the slowest
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)


def read_report(
    lake: Lake, period: Period, namespace: str | None = None, queue: str | None = None
) -> Report | None:
    """Return the numbers of a period, of one queue or of all; None if nothing ended in it."""
    names = ("klasses", "failures", "throughput", "runs", "paths")
    first = min(period.before.first, period.first - timedelta(days=PATH_DAYS))
    dates = (first, period.last)
    with open_lake_database(lake, names, namespace=namespace, dates=dates) as database:
        for name, value in {"first": period.first, "last": period.last, "queue": queue}.items():
            database.execute(f"SET VARIABLE {name} = $1", [value])
        database.execute(read_sql("report/setup", part="klass" if queue else "queue"))
        total = add_up(database, "days", [])
        if not total:
            return None
        namespaces = {whole_of(each["namespace"]) for each in fetch(database, "FROM days")}
        return _fill(
            database,
            Report(
                period,
                sorted(namespaces),
                queue,
                fetch(database, "SELECT getvariable('width') AS width")[0]["width"],
                total[0],
                _read_total(database, period.before),
            ),
        )


def _read_total(database: DuckDBPyConnection, period: Period) -> dict[str, Any] | None:
    where = f"date BETWEEN DATE '{period.first}' AND DATE '{period.last}' AND is_chosen(queue)"
    found = add_up(database, "klasses", [], where)
    return found[0] if found else None


def _fill(database: DuckDBPyConnection, report: Report) -> Report:
    """Read what the page has of tables and charts."""
    if report.width < _FINEST:
        text = read_sql("report/throughput", micros=report.width * 1_000_000)
        database.execute(
            f"CREATE OR REPLACE TEMP VIEW minutes AS SELECT * FROM ({text}) "
            "WHERE is_inside(start) AND is_chosen(queue)"
        )
    groups = add_up(database, "days", ["number::VARCHAR", "name"])
    report.groups = [row | {"name": row["key"][1]} for row in groups]
    report.groups.sort(key=lambda row: int(row["key"][0]))
    klasses = [row | {"name": row["key"][0]} for row in add_up(database, "days", ["klass"])]
    timed = sorted((row for row in klasses if "run" in row), key=lambda row: -row["run"]["p95"])
    report.klasses = timed[:12]
    report.rows = {name: fetch(database, read_sql(f"report/{name}")) for name in _QUERIES}
    report.rows["klasses"] = [row["run"] | {"name": row["name"]} for row in report.klasses]
    for kind in (kind for kind in _MOMENTS if kind in report.total):
        ranks = [(name, max(report.total[kind][name], 1e-5)) for name in ("p50", "p95", "p99")]
        report.rows[f"{kind}_histogram"] = [
            *fetch(database, read_sql("report/histogram", kind=kind)),
            *(
                {"at": at, "line": 13 * number, "label": f"{name} {format_duration(at)}"}
                for number, (name, at) in enumerate(ranks)
            ),
        ]
        text = read_sql("report/quantiles", kind=kind, moment=_MOMENTS[kind])
        report.rows[f"{kind}_quantiles"] = fetch(database, text)
    return report


def render(report: Report) -> str:
    """Return the report as HTML."""
    environment = Environment(
        loader=PackageLoader(__name__, "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    filters: dict[str, Callable[..., Any]] = {
        "duration": format_duration,
        "number": _format_number,
        "moment": "{:%Y-%m-%d %H:%M:%S}".format,
        "day": lambda value: f"{value.day} {value:%B %Y}",
        "plain": _select_plain,
    }
    environment.filters |= filters
    folder = Path(__file__).parent
    return environment.get_template("page.html").render(
        report=report,
        tiles=_make_tiles(report),
        charts=(folder / "charts.json").read_text("utf-8"),
        script="\n".join((folder / name).read_text("utf-8") for name in _SCRIPTS),
        now=datetime.now(UTC),
    )


def format_duration(seconds: float | None) -> str:
    """Return a duration as people write it: 1.2 s, 40 ms, 3 h."""
    if seconds is None:
        return "-"
    found = (each for each in _UNITS if seconds >= each[0] * 0.9995)
    return next((f"{seconds / width:.3g} {unit}" for width, unit in found), "0")


def format_change(value: float | None, before: float | None) -> str:
    """Return by how much a value differs from the one before: `+12 %`, or `new`."""
    if not before or value is None:
        return "new" if value else ""
    change = value / before - 1
    if abs(change) < 0.005:
        return "±0 %"
    if change >= 9.995:
        return f"\N{MULTIPLICATION SIGN}{value / before:,.0f}"
    return f"{change:+.0%}".replace("%", " %").replace("-", "\N{MINUS SIGN}")


def _format_number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}"


def _select_plain(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what a chart needs of rows: texts and numbers."""
    return [
        {name: value for name, value in row.items() if isinstance(value, str | int | float)}
        for row in rows
    ]


def _make_tiles(report: Report) -> list[dict[str, Any]]:
    """Return the numbers at the top, each with its change since the period before."""

    def read(row: dict[str, Any], kind: str, rank: str) -> float | None:
        return row[kind][rank] if kind in row else None

    numbers: dict[str, Callable[[dict[str, Any]], Any]] = {
        "Runs": lambda row: row["runs"],
        "Completed": lambda row: row["completed"] + row["advanced"],
        "Failed": lambda row: row["failed"],
        "Ran again": lambda row: sum(row[name] for name in _AGAIN),
    }
    times: dict[str, Callable[[dict[str, Any]], Any]] = {
        f"{kind.capitalize()}, {label}": partial(read, kind=kind, rank=rank)
        for kind in _MOMENTS
        for rank, label in (("p50", "median"), ("p95", "p95"))
        if kind in report.total
    }
    return [
        {
            "name": name,
            "text": format_duration(of(report.total)) if name in times else f"{of(report.total):,}",
            "change": format_change(of(report.total), of(report.before)) if report.before else "",
            "bad": name == "Failed" and report.total["failed"] > 0,
        }
        for name, of in {**numbers, **times}.items()
    ]
