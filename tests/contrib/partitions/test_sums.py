"""Replies of several partitions, added to that of one namespace."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioqless.contrib.partitions.sums import add_by_name, combine_durations, combine_failures

SECONDS = st.floats(0, 1e6)
SAMPLES = st.lists(st.lists(SECONDS, max_size=20), min_size=1, max_size=8)


def durations(values: list[float]) -> dict[str, object]:
    variance = statistics.variance(values) if len(values) > 1 else 0
    return {
        "count": len(values),
        "total": len(values),
        "mean": statistics.fmean(values) if values else 0,
        "std": variance**0.5,
        "variance": variance,
        "histogram": [len(values), 0],
    }


@given(parts=SAMPLES)
def test_mean_and_variance_are_those_of_all_values(parts: list[list[float]]) -> None:
    together = [value for part in parts for value in part]
    merged, expected = combine_durations(list(map(durations, parts))), durations(together)
    assert merged["count"] == len(together)
    assert merged["histogram"] == [len(together), 0]
    for name in ("mean", "variance", "std"):
        assert merged[name] == pytest.approx(expected[name], rel=1e-6, abs=1e-3)


def test_queues_are_added_by_name_and_paused_if_any_is() -> None:
    replies = [
        [
            {"name": "a", "waiting": 1, "paused": False},
            {"name": "b", "waiting": 2, "paused": False},
        ],
        [{"name": "b", "waiting": 3, "paused": True}],
    ]
    assert add_by_name(replies) == [
        {"name": "a", "waiting": 1, "paused": False},
        {"name": "b", "waiting": 5, "paused": True},
    ]


@given(parts=st.lists(st.lists(st.floats(0, 1e6), min_size=1, unique=True), min_size=1, max_size=5))
def test_merged_marks_of_a_failure_group_never_count_more_jobs_than_it_has(
    parts: list[list[float]],
) -> None:
    records = [
        [
            {
                "group": "g",
                "total": len(times),
                "latest": {},
                "marks": [[rank, when] for rank, when in enumerate(sorted(times, reverse=True), 1)],
            }
        ]
        for times in parts
    ]
    (merged,) = combine_failures(records)
    ranks = [rank for rank, _ in merged["marks"]]
    assert merged["total"] == sum(map(len, parts))
    assert ranks == sorted(ranks)
    assert ranks[-1] == merged["total"]
