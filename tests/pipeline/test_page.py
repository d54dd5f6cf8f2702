"""The report's page, of literal numbers: what few jobs leave out."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

from aioqless.pipeline.report import page
from aioqless.pipeline.report.gathered import Gathered
from aioqless.pipeline.statistics import NUMBERS, OF_TIMES

KINDS = ("wait", "run")
TODAY = date(2026, 11, 21)
WEEK = [[0] * 24 for _ in range(7)]


def of_one_run(**more: Any) -> Gathered:
    """What one run leaves: all of it ended within one slot of time."""
    times = dict.fromkeys(OF_TIMES, 0.5) | {"count": 1, "bins": {"s0": 1}}
    counts = dict.fromkeys(NUMBERS, 0) | {"runs": 1, "completed": 1}
    slot = {"at": 0.0, "put": 1, "completed": 1, "failed": 0, "retried": 0, "waiting": 0.5, "running": 0.5}
    both: dict[str, Any] = {"histograms": {kind: [(0.4, 0.6, 1.0)] for kind in KINDS}, "bands": {kind: [] for kind in KINDS}}
    row = counts | {"queue": "mail", "klass": "Send", "wait": times, "run": times}
    numbers = {"total": row, "queues": [row], "klasses": [row], "flow": [slot], "week": WEEK, **both}
    return Gathered(TODAY, TODAY, ["ql"], 60, **numbers | more)


def headings(text: str, level: str = "h2") -> list[str]:
    return re.findall(f"<{level}>(.*?)</{level}>", text)


def test_a_single_run_has_a_page_without_a_course_over_time() -> None:
    text = page(of_one_run(bands={kind: [(0.0, 1, [0.5] * 4)] for kind in KINDS}))
    assert headings(text) == ["Throughput and concurrency", "Waits", "Runs", "Slowest classes", "When it was done"]
    assert headings(text, "h3") == []


def test_times_of_two_moments_have_a_course() -> None:
    text = page(of_one_run(bands={"wait": [(0.0, 1, [0.5] * 4), (60.0, 1, [0.5] * 4)], "run": []}))
    assert headings(text, "h3") == ["over time"]


def test_jobs_that_never_ran_have_a_page_without_times() -> None:
    cancelled = dict.fromkeys(NUMBERS, 0) | {"cancelled": 1}
    rows = {"queues": [cancelled | {"queue": "mail"}], "klasses": [cancelled | {"klass": "Send"}]}
    text = page(of_one_run(total=cancelled, **rows, histograms={kind: [] for kind in KINDS}))
    assert headings(text) == ["Throughput and concurrency", "When it was done"]
