"""The report's page and numbers, of lakes of literal events."""

from __future__ import annotations

import html
import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import expect
from pyspark.sql import SparkSession

from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.period import Period
from aioqless.contrib.lake.read.report import Report, format_change, read_report, render
from tests.contrib.dashboard.conftest import browsing
from tests.contrib.lake.lakes import DAY, HOUR, TODAY, at, event, fail, fill, run

ONE_DAY, THREE_DAYS = Period(TODAY, TODAY), Period(TODAY, TODAY + timedelta(days=2))
NAMES = [r"$\frac{$", "_hidden", "<b>&amp;", "x" * 512, "日本語💥"]
LONG_NAME = "tenant-" + "x" * 120 + "-mail"


def list_hourly_jobs() -> list[dict[str, Any]]:
    """Return jobs of each hour of three days in 15 queues, and one job of the days before."""
    jobs = [("before", -3 * DAY, 0)]
    jobs += [(f"j{hour}-{n}", hour * HOUR, n) for hour in range(72) for n in range(15 - hour % 15)]
    return [
        event(
            jid,
            run(start, start + 1, start + 3),
            queue=f"q{number:02}",
            klass=f"K{number}",
            date=TODAY + timedelta(days=start // DAY),
        )
        for jid, start, number in jobs
    ]


# Each report is of a namespace of its own, since Spark computes the tables of all at once.
GIVEN = {
    "single": [event("a", run(0, 1, 2), queue=LONG_NAME)],
    "names": [
        *(fail(name, name, klass=name, queue=name) for name in NAMES),
        *(event(f"{name} ", run(3, 4, 5), klass=name, depends=[name]) for name in NAMES),
    ],
    "charts": [
        event("a", run(0, 1, 2), run(60, 61, 63), run(600, 630, 700), klass="<b>mail"),
        event("b", run(700, 710, 720), klass="Other", depends=["a"]),
        fail("c", "<b>mail"),
    ],
    "failures": [fail(f"j{number}", f"group {number % 8}") for number in range(20)],
    "slots": [event(str(time), run(time, time + 1, time + 2)) for time in (0, 60, 540, 600)],
    "no wait": [event(str(n), run(n, n, n + 1)) for n in (0, 60)],
    "long wait": [event(str(n), run(n - 1e9, n, n + 1)) for n in (0, 60)],
    "busy": list_hourly_jobs(),
}


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Return a lake of all these events, and their tables."""
    lake = Lake(tmp_path_factory.mktemp("report") / "lake", create=True)
    fill(lake, *(each | {"namespace": name} for name, given in GIVEN.items() for each in given))
    return lake


def read(lake: Lake, namespace: str, period: Period = ONE_DAY, queue: str | None = None) -> Report:
    report = read_report(lake, period, namespace, queue)
    assert report
    return report


def charts_of(page: str) -> list[list[dict[str, Any]]]:
    found = re.findall(r'data-chart="\w+"><script type="application/json">(.*?)</script>', page)
    return [json.loads(each) for each in found]


def test_a_single_run_has_a_page_without_times_over_time_and_a_long_name_is_shortened(
    lake: Lake,
) -> None:
    text = render(read(lake, "single"))
    assert "<h3>" not in text
    (summary,) = set(re.findall(r"<summary>(tenant.*?)</summary>", text))
    assert len(summary) < 40 and summary.endswith("-mail")
    assert f"</summary>{LONG_NAME}</details>" in text, "it unfolds"


def test_any_name_is_shown_as_it_is(lake: Lake) -> None:
    text = render(read(lake, "names"))
    shown = [{str(row.get("name")) for row in rows} for rows in charts_of(text)]
    for name in NAMES:
        # In charts of classes, failures, their trend and a path.
        assert [any(each.startswith(name) for each in rows) for rows in shown].count(True) == 4
        assert html.unescape(text).count(name) >= 4
    assert "<b>&" not in text


async def test_all_charts_are_drawn_in_a_browser_that_loads_nothing(
    chromium_program: str, tmp_path: Path, lake: Lake
) -> None:
    text = render(read(lake, "charts"))
    file = tmp_path / "report.html"
    file.write_text(text, "utf-8")
    problems: list[str] = []
    async with browsing(chromium_program) as browser:
        page = await browser.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda line: problems.append(line.text))
        page.on("request", lambda request: problems.append(request.url))
        await page.goto(file.as_uri())
        await page.wait_for_selector("html[data-drawn]", state="attached")
        assert problems == [file.as_uri()]
        assert await page.locator(".chart svg").count() == len(charts_of(text)) == 11
        other = page.locator('[data-chart="klasses"] svg', has_text="Other")
        assert await other.count() == 1
        await page.fill("#filter", "mail")
        await expect(other).to_have_count(0)
        assert await page.locator("tr:visible", has_text="Other").count() == 0


def test_slots_without_jobs_are_empty_and_interrupt_percentiles(lake: Lake) -> None:
    report = read(lake, "slots")
    assert report.width == 10
    slots = [row for row in report.rows["levels"] if row["name"] == "running"]
    assert [row["moment"] for row in slots] == [at(n * 10).timestamp() * 1000 for n in range(62)]
    assert [n for n, row in enumerate(slots) if row["jobs"]] == [0, 6, 54, 60, 61]
    quantiles = report.rows["run_quantiles"]
    assert [n for n, row in enumerate(quantiles) if row["p50"]] == [0, 6, 54, 60]


@pytest.mark.parametrize(("namespace", "seconds"), [("no wait", 0), ("long wait", 1e9)])
def test_times_of_any_length_have_a_page(lake: Lake, namespace: str, seconds: float) -> None:
    report = read(lake, namespace)
    assert report.total["wait"]["p50"] == pytest.approx(seconds, rel=0.006)
    assert render(report).count("<h3>Over time</h3>") == 2


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


def test_days_of_a_period_are_shown_by_the_hour(lake: Lake) -> None:
    report = read(lake, "busy", THREE_DAYS)
    assert report.width == HOUR
    assert len(report.rows["ended"]) == len(report.rows["run_quantiles"]) == 72
    assert {row["p50"] for row in report.rows["run_quantiles"]} == {2}
    assert read(lake, "busy").total["runs"] == sum(15 - hour % 15 for hour in range(24))
    day = TODAY - timedelta(days=9)
    assert read_report(lake, Period(day, day), "busy") is None


def test_beyond_the_busiest_groups_the_others_are_one_row(lake: Lake) -> None:
    report = read(lake, "busy", THREE_DAYS)
    names = [row["name"] for row in report.groups]
    assert names == [*(f"q{number:02}" for number in range(12)), "3 others"]
    assert sum(row["runs"] for row in report.groups) == report.total["runs"]
    assert sum(row["run"]["count"] for row in report.groups) == report.total["run"]["count"]
    assert len(report.klasses) == 12


def test_a_report_is_compared_with_the_period_before(lake: Lake) -> None:
    report = read(lake, "busy", THREE_DAYS)
    assert report.before and report.before["runs"] == 1
    page = render(report)
    assert "Changes are relative to 18 November 2026 \N{EN DASH} 20 November 2026" in page
    assert read(lake, "busy", Period(TODAY - timedelta(days=3), TODAY)).before is None


def test_a_report_of_a_queue_is_about_that_queue_alone(lake: Lake) -> None:
    report = read(lake, "busy", THREE_DAYS, queue="q14")
    assert report.total["runs"] == 5 and report.before is None
    assert [row["name"] for row in report.groups] == ["K14"]
    assert sum(row["runs"] for row in report.rows["ended"]) == 5
    assert sum(row["jobs"] or 0 for row in report.rows["run_quantiles"]) == 5
    assert read_report(lake, THREE_DAYS, "busy", "unknown") is None
