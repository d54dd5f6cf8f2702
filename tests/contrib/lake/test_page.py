"""The report's page, of literal numbers: what few jobs leave out."""

from __future__ import annotations

import html
import re
from datetime import UTC, date, datetime
from typing import Any

import pytest

from aioqless.contrib.lake.report import page
from aioqless.contrib.lake.report.report_data import Gathered, without_gaps
from aioqless.contrib.lake.statistics import OF_TIMES
from aioqless.contrib.lake.tables.counts import NUMBERS

KINDS = ("wait", "run")
TODAY = date(2026, 11, 21)
MIDNIGHT = datetime(2026, 11, 21, tzinfo=UTC)
NEVER = [[0] * 24 for _ in range(7)]
WEEK = [[0] * 23 + [1], *NEVER[1:]]


def of_one_run(**more: Any) -> Gathered:
    """What one run leaves: all of it ended within one slot of time."""
    times = dict.fromkeys(OF_TIMES, 0.5) | {"count": 1, "bins": {"s0": 1}}
    counts = dict.fromkeys(NUMBERS, 0) | {"runs": 1, "completed": 1}
    slot = {
        "at": 0.0,
        "put": 1,
        "completed": 1,
        "failed": 0,
        "retried": 0,
        "waiting": 0.5,
        "running": 0.5,
    }
    both: dict[str, Any] = {
        "histograms": {kind: [(0.4, 0.6, 1.0)] for kind in KINDS},
        "bands": {kind: [] for kind in KINDS},
    }
    row = counts | {"queue": "mail", "klass": "Send", "wait": times, "run": times}
    numbers = {
        "total": row,
        "queues": [row],
        "klasses": [row],
        "flow": [slot],
        "week": WEEK,
        **both,
    }
    return Gathered(TODAY, TODAY, ["ql"], 60, **numbers | more)


def headings(text: str, level: str = "h2") -> list[str]:
    return re.findall(f"<{level}>(.*?)</{level}>", text)


def test_a_single_run_has_a_page_without_a_course_over_time() -> None:
    text = page(of_one_run(bands={kind: [(0.0, 1, [0.5] * 4)] for kind in KINDS}))
    assert headings(text) == [
        "Throughput and concurrency",
        "Waits",
        "Runs",
        "Slowest classes",
        "When it was done",
    ]
    assert headings(text, "h3") == []


def test_times_of_two_moments_have_a_course() -> None:
    text = page(of_one_run(bands={"wait": [(0.0, 1, [0.5] * 4), (60.0, 1, [0.5] * 4)], "run": []}))
    assert headings(text, "h3") == ["over time"]


def test_jobs_that_never_ran_have_a_page_without_times() -> None:
    cancelled = dict.fromkeys(NUMBERS, 0) | {"cancelled": 1}
    rows = {"queues": [cancelled | {"queue": "mail"}], "klasses": [cancelled | {"klass": "Send"}]}
    text = page(
        of_one_run(
            total=cancelled, **rows, flow=[], week=NEVER, histograms={kind: [] for kind in KINDS}
        )
    )
    assert headings(text) == ["Throughput and concurrency"] and "<svg" not in text


def named(name: str) -> dict[str, Any]:
    """A klass, a failure and a step of a path with this name."""
    failed = {
        "failure_group": name, "count": 2, "retried": 1, "first_seen": MIDNIGHT, "last_seen": MIDNIGHT, "klasses": [name],
        "days": [{"date": TODAY, "by_hour": [2] + [0] * 23}], "samples": [{"ended": MIDNIGHT, "jid": name, "message": None}],
    }  # fmt: skip
    row = dict.fromkeys(NUMBERS, 0) | {
        "klass": name,
        "run": dict.fromkeys(OF_TIMES, 0.5) | {"count": 1},
    }
    return {
        "klasses": row,
        "failures": failed,
        "steps": {"jid": name, "klass": name, "popped": MIDNIGHT, "ended": MIDNIGHT},
    }


def test_any_name_is_shown_as_it_is() -> None:
    names = [r"$\frac{$", "_hidden", "<b>&amp;", "x" * 512, "日本語💥"]
    klasses, failed, steps = (
        [named(name)[what] for name in names] for what in ("klasses", "failures", "steps")
    )
    path = {
        "namespace": "ql",
        "jid": names[0],
        "klass": names[1],
        "began": MIDNIGHT,
        "steps": steps,
        "depth": 1,
    }
    path |= dict.fromkeys(("seconds", "running", "waiting"), 0.0)
    text = page(of_one_run(klasses=klasses, failures=failed, paths=[path]))
    charts = [
        re.findall(r"<text[^>]*>(.*?)</text>", each)
        for each in re.findall("<svg.*?</svg>", text, re.DOTALL)
    ]
    for name in names:
        naming = [
            any(html.unescape(line).endswith(name[-30:]) for line in lines) for lines in charts
        ]
        assert naming.count(True) == 4, f"{name} is in classes, failures, their trend, the path"
        assert html.unescape(text).count(name) >= 4
    assert "<b>&" not in text


def test_between_two_busy_times_nothing_waited() -> None:
    busy = {"put": 1, "completed": 1, "failed": 0, "retried": 0, "waiting": 9.0, "running": 1.0}
    flow = without_gaps([busy | {"at": 600.0}, busy | {"at": 60.0}, busy | {"at": 540.0}], 60)
    assert [row["waiting"] for row in flow] == [9, 0, 0, 0, 0, 0, 0, 0, 9, 9] and [
        flow[0]["at"],
        flow[-1]["at"],
    ] == [60, 600]
    assert without_gaps([], 60) == []


@pytest.mark.parametrize("seconds", [0.0, 1e12])
def test_times_of_any_length_have_a_page(seconds: float) -> None:
    times = dict.fromkeys(OF_TIMES, seconds) | {"count": 1}
    row = dict.fromkeys(NUMBERS, 0) | {
        "runs": 1,
        "klass": "Send",
        "queue": "mail",
        "wait": times,
        "run": times,
    }
    bands = {kind: [(at, 1, [seconds] * 3) for at in (0.0, 60.0)] for kind in KINDS}
    assert (
        headings(page(of_one_run(total=row, klasses=[row], bands=bands)), "h3") == ["over time"] * 2
    )
