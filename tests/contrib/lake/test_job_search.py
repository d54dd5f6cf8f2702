"""Jobs of the lake are found by a filter."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from aioqless.contrib.job_filter import JobFilter
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.read.job_search import list_days, search_day
from tests.contrib.lake.lakes import archive, event, run

DAY = date(2026, 11, 21)
DATA = '{"customer": 4711, "items": [{"sku": "a b"}], "none": null, "big": 9007199254740993}'
EVENTS = [
    event("a", run(0, 1, 2, "fail", failure_group="typo"), id="1-0", data=DATA, tags=["news"]),
    event("b", run(0, 5, 9), id="2-0", klass="app.Send", queue="post", worker="ann"),
    event("c", run(0, 10, 11, "advance"), id="3-0"),
    event("c", run(11, 20, 30), id="4-0", queue="next", data="not JSON"),
    event("other", run(0, 5, 9), id="1-0", namespace="{billing}"),
    event("later", run(86_400, 86_401, 86_402), id="5-0", date=date(2026, 11, 22)),
]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = Lake(tmp_path_factory.mktemp("lake") / "lake", create=True)
    archive(lake, *EVENTS)
    return lake


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["c", "b", "a"]),
        ("state:failed", ["a"]),
        ("-state:failed", ["c", "b"]),
        ("queue:next,post", ["c", "b"]),
        ("queue:mail", ["a"]),
        ("klass:app.*", ["b"]),
        ("klass:*end", ["b"]),
        ("SEND", ["b"]),
        ("b", ["b"]),
        ("tag:news", ["a"]),
        ("-tag:*", ["c", "b"]),
        ("group:typo", ["a"]),
        ("worker:ann", ["b"]),
        ("customer:4711", ["a"]),
        ('items.0.sku:"a b"', ["a"]),
        ("items:*", []),
        ("none:null", ["a"]),
        ("big:9007199254740993", ["a"]),
        ("-customer:4711", ["c", "b"]),
        ("run:>3s", ["c", "b"]),
        ("since:2026-11-21T00:00:05 until:2026-11-21T00:00:20", ["b"]),
        ("age:<1s", []),
    ],
)
def test_jobs_of_a_day_are_found_as_in_redis(lake: Lake, text: str, expected: list[str]) -> None:
    found = search_day(lake, "ql", JobFilter.parse(text), DAY, 100)
    assert [job.jid for job in found] == expected


def test_days_are_listed_latest_first(lake: Lake, tmp_path: Path) -> None:
    assert list_days(lake, "ql") == [date(2026, 11, 22), DAY]
    assert list_days(Lake(tmp_path / "empty", create=True), "ql") == []
    (job,) = search_day(lake, "ql", JobFilter.parse("b"), DAY, 1)
    assert (job.last_queue, job.last_worker, job.ran, job.state) == ("post", "ann", 4, "complete")
