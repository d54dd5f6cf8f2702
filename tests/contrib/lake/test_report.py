"""The report's page and numbers, of literal rows and of lakes without Spark."""

from __future__ import annotations

import html
import json
import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import expect

from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.refresh import refresh
from aioqless.contrib.lake.report import Report, read_report, render
from aioqless.contrib.lake.report.charts import (
    GROUPS,
    MUTED,
    RUN,
    Slot,
    draw_failures,
    draw_quantiles,
    draw_trend,
)
from aioqless.contrib.lake.report.page import format_change
from aioqless.contrib.lake.report.report_data import TOP, fill_gaps
from aioqless.contrib.lake.schema import CELL, COUNTS
from aioqless.contrib.lake.statistics import Period
from tests.contrib.dashboard.conftest import browsing
from tests.contrib.lake.lakes import archive, no_spark
from tests.contrib.lake.literal import event, run

KINDS = ("wait", "run")
TODAY = date(2026, 11, 21)
MIDNIGHT = datetime(2026, 11, 21, tzinfo=UTC)
IDLE_WEEK = [[0] * 24 for _ in range(7)]
WEEK = [[0] * 23 + [1], *IDLE_WEEK[1:]]
HOUR, DAY = 3600, 86_400


def report_of_one_run(**changes: Any) -> Report:
    """The report of a single run."""
    times = dict.fromkeys(CELL.names, 0.5) | {"count": 1}
    counts = dict.fromkeys(COUNTS, 0) | {"runs": 1, "completed": 1}
    row = counts | {"queue": "mail", "klass": "Send", "wait": times, "run": times, "before": 0}
    numbers: dict[str, Any] = {
        "total": row,
        "groups": [row],
        "klasses": [row],
        "flow": [slot(0.0)],
        "week": WEEK,
        "histograms": {kind: [(0.4, 0.6, 1.0)] for kind in KINDS},
        "slots": {kind: [] for kind in KINDS},
    }
    return Report(Period(TODAY, TODAY), ["ql"], width=60, **numbers | changes)


def slot(at: float) -> dict[str, Any]:
    counts = {"put": 1, "completed": 1, "failed": 0, "retried": 0}
    return counts | {"at": at, "waiting": 0.5, "running": 0.5}


def headings(text: str, level: str = "h2") -> list[str]:
    return re.findall(f"<{level}>(.*?)</{level}>", text)


def test_a_single_run_has_a_page_without_times_over_time() -> None:
    text = render(report_of_one_run(slots={kind: [Slot(0.0, 1, [0.5] * 3)] for kind in KINDS}))
    assert headings(text) == [
        "Throughput and concurrency",
        "Wait time",
        "Run time",
        "Slowest classes",
        "Busiest hours",
    ]
    assert headings(text, "h3") == []


def rows_named(name: str) -> dict[str, Any]:
    """A class, a failure and a step of a path with this name."""
    failure = {
        "failure_group": name,
        "count": 2,
        "retried": 1,
        "first_seen": MIDNIGHT,
        "last_seen": MIDNIGHT,
        "klasses": [name],
        "days": [{"date": TODAY, "by_hour": [2] + [0] * 23}],
        "samples": [{"ended": MIDNIGHT, "jid": name, "message": None}],
    }
    times = dict.fromkeys(CELL.names, 0.5) | {"count": 1}
    return {
        "klasses": dict.fromkeys(COUNTS, 0) | {"klass": name, "run": times},
        "failures": failure,
        "steps": {"jid": name, "klass": name, "popped": MIDNIGHT, "ended": MIDNIGHT},
    }


def test_any_name_is_shown_as_it_is() -> None:
    names = [r"$\frac{$", "_hidden", "<b>&amp;", "x" * 512, "日本語💥"]
    klasses, failures, steps = (
        [rows_named(name)[what] for name in names] for what in ("klasses", "failures", "steps")
    )
    path = {"namespace": "ql", "jid": names[0], "klass": names[1], "queue": "mail", "depth": 1}
    path |= {"began": MIDNIGHT, "steps": steps, "seconds": 0.0, "running": 0.0, "waiting": 0.0}
    text = render(report_of_one_run(klasses=klasses, failures=failures, paths=[path]))
    shown = [{row.get("name") for row in chart["data"]["values"]} for chart in charts_of(text)]
    for name in names:
        # In charts of classes, failures, their trend and the path.
        assert [any(str(each).endswith(name) for each in rows) for rows in shown].count(True) == 4
        assert html.unescape(text).count(name) >= 4
    assert "<b>&" not in text


def charts_of(page: str) -> list[dict[str, Any]]:
    found = re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    return [json.loads(each) for each in found]


async def test_all_charts_are_drawn_in_a_browser_that_loads_nothing(tmp_path: Path) -> None:
    slots = [Slot(60.0 * at, 1, [0.5, 1.0, 2.0]) for at in range(3)]
    rows = rows_named("<b>mail")
    path = {"namespace": "ql", "jid": "a", "klass": "K", "queue": "mail", "depth": 1}
    path |= {"began": MIDNIGHT, "steps": [rows["steps"]]}
    path |= dict.fromkeys(("seconds", "running", "waiting"), 0.0)
    report = report_of_one_run(
        klasses=[rows["klasses"], {**rows["klasses"], "klass": "Other"}],
        failures=[rows["failures"]],
        slots=dict.fromkeys(KINDS, slots),
        paths=[path],
    )
    (tmp_path / "report.html").write_text(render(report), "utf-8")
    problems: list[str] = []
    async with browsing() as browser:
        page = await browser.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda line: problems.append(line.text))
        page.on("request", lambda request: problems.append(request.url))
        await page.goto((tmp_path / "report.html").as_uri())
        await page.wait_for_selector("html[data-drawn]", state="attached")
        assert problems == [(tmp_path / "report.html").as_uri()]
        assert await page.locator(".chart svg").count() == len(charts_of(render(report))) == 11
        other = page.locator(".chart svg", has_text="Other")
        assert await other.count() == 1
        await page.fill("#filter", "mail")
        await expect(other).to_have_count(0)
        assert await page.locator("tr:visible", has_text="Other").count() == 0


def test_a_long_name_is_shortened_and_unfolds() -> None:
    name = "tenant-" + "x" * 120 + "-mail"
    row = report_of_one_run().groups[0] | {"queue": name}
    text = render(report_of_one_run(groups=[row]))
    (summary,) = set(re.findall(r"<summary>(tenant.*?)</summary>", text))
    assert len(summary) < 40 and summary.endswith("-mail")
    assert f"</summary>{name}</details>" in text


def test_each_failure_group_has_its_own_color() -> None:
    failures = [rows_named(f"group {number}")["failures"] for number in range(8)]
    trend = [(row["failure_group"], [1, 2]) for row in failures[: len(GROUPS)]]
    used = {row["color"] for row in draw_failures(failures)["data"]["values"]}
    (bars,) = draw_trend([*trend, ("others", [1, 1])], 0, HOUR)["layer"]
    assert used == {*GROUPS, MUTED} == {*bars["encoding"]["color"]["scale"]["range"]}


def test_empty_slots_are_filled_between_busy_ones() -> None:
    flow = fill_gaps([slot(600.0), slot(60.0), slot(540.0)], 60)
    assert [row["waiting"] for row in flow] == [0.5, 0, 0, 0, 0, 0, 0, 0, 0.5, 0.5]
    assert (flow[0]["at"], flow[-1]["at"]) == (60, 600)
    assert fill_gaps([], 60) == []


def test_quantiles_are_not_joined_across_empty_slots() -> None:
    slots = [Slot(at, 1, [1.0, 2.0, 3.0]) for at in (0.0, 60.0, 6000.0, 6060.0)]
    rows = draw_quantiles(slots, RUN, 60, "")["data"]["values"]
    assert [row["at"] for row in rows] == [0.0, 60.0, 120.0, 6000.0, 6060.0]
    assert ["median" in row for row in rows] == [True, True, False, True, True]


@pytest.mark.parametrize("seconds", [0.0, 1e12])
def test_times_of_any_length_have_a_page(seconds: float) -> None:
    times = dict.fromkeys(CELL.names, seconds) | {"count": 1}
    row = report_of_one_run().total | {"wait": times, "run": times}
    slots = {kind: [Slot(at, 1, [seconds] * 3) for at in (0.0, 60.0)] for kind in KINDS}
    text = render(report_of_one_run(total=row, klasses=[row], slots=slots))
    assert headings(text, "h3") == ["Over time"] * 2


@pytest.mark.parametrize(
    ("value", "before", "text"),
    [
        (112, 100, "+12 %"),
        (90, 100, "\N{MINUS SIGN}10 %"),
        (100, 100, "±0 %"),
        (5000, 100, "\N{MULTIPLICATION SIGN}50"),
        (5, 0, "new"),
        (0, 0, ""),
        (None, 1.0, ""),
    ],
)
def test_a_change_is_a_percentage(value: float | None, before: float, text: str) -> None:
    assert format_change(value, before) == text


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Hourly jobs of three days in 15 queues, and one job of the days before."""
    lake = Lake(tmp_path_factory.mktemp("report") / "lake", create=True)
    jobs = [("before", -3 * DAY, 0)]
    jobs += [(f"j{hour}-{n}", hour * HOUR, n) for hour in range(72) for n in range(15 - hour % 15)]
    archive(
        lake,
        *(
            event(
                jid,
                run(at, at + 1, at + 3),
                queue=f"q{number}",
                klass=f"K{number}",
                date=TODAY + timedelta(days=at // DAY),
            )
            for jid, at, number in jobs
        ),
    )
    refresh(lake, no_spark)
    return lake


THREE_DAYS = Period(TODAY, TODAY + timedelta(days=2))


def read(lake: Lake, period: Period, queue: str | None = None) -> Report:
    report = read_report(lake, period, queue=queue)
    assert report
    return report


def test_three_days_are_shown_by_the_hour(lake: Lake) -> None:
    report = read(lake, THREE_DAYS)
    assert report.width == HOUR
    assert len(report.flow) == len(report.slots["run"]) == 72
    assert all(each.quantiles[0] == pytest.approx(2, rel=0.006) for each in report.slots["run"])


def test_what_is_outside_of_the_period_is_left_out(lake: Lake) -> None:
    assert read(lake, Period(TODAY, TODAY)).total["runs"] == sum(
        15 - hour % 15 for hour in range(24)
    )
    assert read_report(lake, Period(TODAY - timedelta(days=9), TODAY - timedelta(days=9))) is None


def test_beyond_the_busiest_groups_the_others_are_one_row(lake: Lake) -> None:
    report = read(lake, THREE_DAYS)
    *named, others = report.groups
    assert [row["queue"] for row in named] == [f"q{number}" for number in range(TOP)]
    assert (others["queue"], others["others"]) == (None, 3)
    assert sum(row["runs"] for row in report.groups) == report.total["runs"]
    assert sum(row["run"]["count"] for row in report.groups) == report.total["run"]["count"]
    assert report.faster == 3


def test_a_report_is_compared_with_the_period_before(lake: Lake) -> None:
    report = read(lake, THREE_DAYS)
    page = render(report)
    assert report.before and report.before["runs"] == 1
    assert [row["before"] for row in report.groups[:2]] == [1, 0]
    assert "3 others" in page
    assert "Changes are relative to 18 November 2026 \N{EN DASH} 20 November 2026" in page
    assert read(lake, Period(TODAY - timedelta(days=3), TODAY)).before is None


def test_a_report_of_a_queue_is_about_that_queue_alone(lake: Lake) -> None:
    report = read(lake, THREE_DAYS, queue="q14")
    assert report.total["runs"] == 5
    assert [row["klass"] for row in report.groups] == ["K14"]
    assert sum(row["completed"] for row in report.flow) == 5
    assert sum(each.count for each in report.slots["run"]) == 5
    assert read_report(lake, THREE_DAYS, queue="unknown") is None
