"""Each table, of literal rows."""

from __future__ import annotations

import statistics
from datetime import date
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from aioqless.contrib.lake import tables
from aioqless.contrib.lake.schema import TABLES
from aioqless.contrib.lake.tables.bins import QLESS, span
from aioqless.contrib.lake.tables.groups import known
from tests.contrib.lake.literal import at, attempts, by, event, events, run

TODAY, TOMORROW = date(2026, 11, 21), date(2026, 11, 22)
DAY, HOUR = 86_400, 3600


def has_the_columns_of(table: DataFrame, name: str) -> bool:
    expected = TABLES[name].schema
    found = [(field.name, field.dataType.simpleString()) for field in table.schema]
    return found == [(field.name, field.dataType.simpleString()) for field in expected]


def test_each_attempt_is_a_run_with_what_it_waited_and_ran_to_the_microsecond(
    spark: SparkSession,
) -> None:
    lost = run(0, 1, 61, "lost", worker="w0")
    table = attempts(
        spark,
        event("a", lost, run(61, 62.5, 62.500001, fence=2), tags=["x"]),
        event("b", run(None, 3, 4)),
        event("c"),
    )
    assert has_the_columns_of(table, "silver/runs")
    rows = by(table.collect(), "jid", "attempt")
    assert set(rows) == {("a", 1), ("a", 2), ("b", 1)}
    first, second = rows["a", 1], rows["a", 2]
    assert (first.how, first.worker, first.wait, first.run) == ("lost", "w0", 1.0, 60.0)
    assert (second.how, second.wait, second.run, second.tags, second.fence) == (
        "complete",
        1.5,
        1e-06,
        ["x"],
        2,
    )
    assert rows["b", 1].wait is None


def test_a_job_is_one_row_with_its_stages_in_their_order(spark: SparkSession) -> None:
    second = event(
        "a",
        run(10, 12, 15),
        queue="post",
        klass="Send",
        state="complete",
        depends=["z"],
        date=TOMORROW,
        id="9-0",
    )
    first = event(
        "a", run(0, 1, 2, "retried"), run(2, 4, 10, "advance"), to="post", tags=["x"], id="8-0"
    )
    table = tables.jobs(
        tables.stages(
            events(spark, second, first, event("b", run(0, 1, 2, "fail", group="g", message="m")))
        )
    )
    assert has_the_columns_of(table, "silver/jobs")
    rows = by(table.collect(), "jid")
    job = rows["a"]
    assert [(stage.queue, stage.what, stage.attempts) for stage in job.stages] == [
        ("mail", "advance", 2),
        ("post", "complete", 1),
    ]
    assert (job.queue, job.klass, job.state, job.depends) == ("post", "Send", "complete", ["z"])
    assert (job.attempts, job.wait, job.run) == (3, 1 + 2 + 2, 1 + 6 + 3)
    assert (job.date, rows["b"].state, rows["b"].group) == (TODAY, "failed", "g")


def test_a_job_made_of_its_own_stages_and_new_ones_is_the_same_as_of_all_events(
    spark: SparkSession,
) -> None:
    first, second = event("a", run(0, 1, 2, "fail", group="g")), event("a", run(5, 6, 7))
    before = tables.jobs(tables.stages(events(spark, first)))
    later = tables.jobs(tables.stages_of(before).unionByName(tables.stages(events(spark, second))))
    assert later.collect() == tables.jobs(tables.stages(events(spark, first, second))).collect()


def test_times_are_kept_by_queue_klass_worker_and_tag_and_what_of_these_is_asked_for_together(
    spark: SparkSession,
) -> None:
    rows = [
        event("a", run(0, 2, 6), tags=["x", "y"]),
        event("b", run(0, 4, 5), klass="Send"),
        event("c", run(0, 6, 6.5, "fail", group="g"), tags=["x"]),
    ]
    table = tables.times(attempts(spark, *rows))
    assert has_the_columns_of(table, "gold/times")
    found = by(table.collect(), "by", "queue", "klass", "tag", "worker", "kind")
    everything = found["", None, None, None, None, "wait"]
    assert (
        everything["count"],
        everything.mean,
        everything.variance,
        everything.least,
        everything.most,
    ) == (3, 4, 4, 2, 6)
    assert everything.histogram == {"s2": 1, "s4": 1, "s6": 1}
    assert (
        found["tag", None, None, "x", None, "wait"].mean == 4
        and found["tag", None, None, "y", None, "wait"].mean == 2
    )
    assert found["queue,klass,tag", "mail", "Greet", "x", None, "run"]["count"] == 1
    assert found["queue", "mail", None, None, None, "spent"].mean == 0.5
    assert found["worker", None, None, None, "w1", "run"].mean == 2.5
    assert found["klass", None, "Send", None, None, "run"]["p99"] == 1


def test_a_day_of_times_is_utcs_of_the_pop_for_waits_and_of_the_end_for_runs(
    spark: SparkSession,
) -> None:
    found = by(
        tables.times(attempts(spark, event("a", run(0, DAY - 1, DAY + 4))))
        .where("by = ''")
        .collect(),
        "kind",
    )
    assert (found["wait"].date, found["run"].date) == (TODAY, TOMORROW)


@pytest.mark.parametrize(
    ("seconds", "fine", "coarse"),
    [
        (0, "s0", "s0"), (59.999999, "s59", "s59"), (60, "m1", "m1"), (HOUR - 1, "m59", "m59"), (HOUR, "q4", "h1"),
        (2 * HOUR - 1, "q7", "h1"), (DAY - 1, "q95", "h23"), (DAY, "h24", "d1"), (3 * DAY - 1, "h71", "d2"),
        (3 * DAY, "d3", "d3"), (40 * DAY, "d40", "d40"),
    ],
)  # fmt: skip
def test_a_bin_has_what_it_says(seconds: float, fine: str, coarse: str) -> None:
    start, end = span(fine)
    assert start <= seconds < end
    if coarse in QLESS:
        assert span(coarse)[0] <= seconds < span(coarse)[1]


def test_the_bins_are_the_specifications_and_qless_own(spark: SparkSession) -> None:
    waits = {
        0: "s0",
        59.999999: "s59",
        60: "m1",
        HOUR: "q4",
        2 * HOUR - 1: "q7",
        DAY - 1: "q95",
        DAY: "h24",
        3 * DAY - 1: "h71",
        3 * DAY: "d3",
    }
    rows = [event(str(wait), run(-wait, 0, 1)) for wait in waits]
    (row,) = tables.times(attempts(spark, *rows)).where("by = '' AND kind = 'wait'").collect()
    assert row.bins == dict.fromkeys(waits.values(), 1)
    assert row.histogram == {
        "s0": 1,
        "s59": 1,
        "m1": 1,
        "h1": 2,
        "h23": 1,
        "d1": 1,
        "d2": 1,
        "d3": 1,
    }
    assert len(QLESS) == 148 and set(row.histogram) <= set(QLESS)


def test_days_merge_to_what_all_of_their_numbers_come_to(spark: SparkSession) -> None:
    waits = [
        10**6 + number * 0.001 for number in range(40)
    ]  # far from 0 and close together, where sums of squares lose their digits
    rows = [
        event(f"{number}", run(-wait + number % 3 * DAY, number % 3 * DAY, number % 3 * DAY + 1))
        for number, wait in enumerate(waits)
    ]
    daily = tables.times(attempts(spark, *rows)).where("by = 'queue' AND kind = 'wait'")
    (row,) = tables.merged_times(daily, ["queue"]).collect()
    assert row["count"] == 40 and row.queue == "mail"
    assert row.mean == pytest.approx(statistics.mean(waits), rel=1e-12)
    assert row.variance == pytest.approx(statistics.variance(waits), rel=1e-4)
    assert row.p50 in waits and abs(row.p50 - statistics.median(waits)) < 0.002
    assert sum(row.bins.values()) == 40


def test_ends_are_counted_as_they_were(spark: SparkSession) -> None:
    rows = [
        event(
            "a",
            run(0, 1, 2, "retried"),
            run(2, 3, 4, "timed-out"),
            run(4, 5, 6, "lost"),
            run(6, 7, 8),
            tags=["x"],
        ),
        event("b", run(0, 1, 2, "advance")),
        event("c", run(0, 1, 2, "released"), run(2, 3, 4, "fail", group="g")),
        event("d", ended=3),
        event("e", ended=3, what="move", tags=["x"]),
    ]
    table = tables.counts(events(spark, *rows))
    assert has_the_columns_of(table, "gold/counts")
    found = by(table.collect(), "by", "tag", "worker")
    expected: dict[str, Any] = {
        "completed": 1,
        "advanced": 1,
        "failed": 1,
        "cancelled": 1,
        "moved": 1,
        "runs": 7,
    }
    everything = found["", None, None].asDict()
    assert {name: everything[name] for name in expected} == expected
    assert [everything[name] for name in ("retried", "released", "timed_out", "lost")] == [
        1,
        1,
        1,
        1,
    ]
    assert (found["tag", "x", None].moved, found["tag", "x", None].completed) == (1, 1)
    assert ("worker", None, None) not in found and found["worker", None, "w1"].runs == 7


def test_failures_say_how_often_when_of_what_and_show_some(spark: SparkSession) -> None:
    failing = [
        event(
            f"j{number}",
            run(0, 1, HOUR * number, "fail", group="g", message="x" * 5000 + str(number)),
        )
        for number in range(1, 9)
    ]
    retried = event(
        "r", run(0, 1, 2, "retried", group="g", message="soon"), run(3, 4, 5), klass="Send"
    )
    table = tables.failures(events(spark, *failing, retried, event("fine", run(0, 1, 2))))
    assert has_the_columns_of(table, "gold/failures")
    (row,) = table.collect()
    assert (row["group"], row["count"], row.retried, row.klasses) == ("g", 8, 1, ["Greet", "Send"])
    assert (row.first_seen.timestamp(), row.last_seen.timestamp()) == (
        at(2).timestamp(),
        at(8 * HOUR).timestamp(),
    )
    assert row.by_hour == [0, *[1] * 8, *[0] * 15]
    assert [sample.jid for sample in row.samples] == ["j8", "j7", "j6", "j5", "j4"]
    assert row.samples[0].message.endswith("xx8") and len(row.samples[0].message) == 2001


def test_throughput_has_what_came_and_went_and_the_mean_of_what_waited_and_ran(
    spark: SparkSession,
) -> None:
    table = tables.throughput(
        attempts(
            spark, event("a", run(30, 90, 150)), event("b", run(60, 90, 400, "fail", group="g"))
        )
    )
    assert has_the_columns_of(table, "gold/throughput")
    rows = sorted(table.collect(), key=lambda row: row.start)
    assert [round(row.start.timestamp() - at(0).timestamp()) for row in rows] == [
        0,
        60,
        120,
        180,
        240,
        300,
        360,
    ]
    assert [(row.put, row.popped, row.completed, row.failed) for row in rows[:4]] == [
        (1, 0, 0, 0),
        (1, 2, 0, 0),
        (0, 0, 1, 0),
        (0, 0, 0, 0),
    ]
    assert [row.waiting for row in rows[:3]] == [0.5, 1.0, 0.0]
    assert [row.running for row in rows] == pytest.approx([0, 1.0, 1.5, 1, 1, 1, 40 / 60])


def test_what_waits_and_runs_over_midnight_does_so_on_both_days(spark: SparkSession) -> None:
    table = tables.throughput(
        attempts(spark, event("a", run(DAY - HOUR, DAY + HOUR, 3 * DAY + 60))), width=HOUR
    )
    rows = by(table.collect(), "date", "start")
    total = {day: (0.0, 0.0) for day, _ in rows}
    for (day, _), row in rows.items():
        total[day] = (total[day][0] + row.waiting, total[day][1] + row.running)
    assert list(total[TODAY]) == [1, 0] and list(total[TOMORROW]) == [1, 23]
    assert sorted(total) == [date(2026, 11, number) for number in (21, 22, 23, 24)]
    assert total[date(2026, 11, 23)] == (0, 24) and total[date(2026, 11, 24)][1] == pytest.approx(
        1 / 60
    )


def test_what_waited_or_ran_for_longer_than_a_month_is_told_of_on_its_first_day_and_in_the_last_month(
    spark: SparkSession,
) -> None:
    for told, first in (
        (run(-at(0).timestamp(), 5, 9), date(1970, 1, 1)),
        (run(-400 * DAY, -300 * DAY, 9), date(2025, 10, 17)),
    ):
        rows = events(spark, event("a", told))
        days = sorted(row.day for row in tables.days_told(rows).collect())
        placed = {row.date for row in tables.throughput(tables.runs(rows), width=DAY).collect()}
        assert (
            days[0] == first == min(placed)
            and days[-1] == TODAY == max(placed)
            and placed == set(days)
        )
        assert 32 <= len(days) <= 63 and days[-31] == date(2026, 10, 22)


def test_a_critical_path_is_the_chain_that_decided_when_the_job_could_begin(
    spark: SparkSession,
) -> None:
    rows = [
        event("slow", run(0, 1, 50)),
        event("quick", run(0, 1, 5)),
        event("middle", run(50, 51, 60), depends=["slow", "quick"]),
        event("other", run(0, 1, 55)),
        event("report", run(60, 65, 70), depends=["middle", "other", "never"]),
        event("alone", run(0, 1, 2), depends=["gone"]),
    ]
    table = tables.paths(tables.jobs(tables.stages(events(spark, *rows))))
    assert has_the_columns_of(table, "gold/paths")
    found = by(table.collect(), "jid")
    assert set(found) == {"middle", "report"}
    path = found["report"]
    assert [step.jid for step in path.steps] == ["slow", "middle", "report"]
    assert (path.depth, path.seconds, path.running, path.waiting) == (3, 70, 49 + 9 + 5, 7)
    assert [step.jid for step in found["middle"].steps] == ["slow", "middle"]


def test_jobs_that_wait_for_each_other_have_no_path(spark: SparkSession) -> None:
    rows = [
        event("a", run(0, 1, 1), depends=["b"]),
        event("b", run(0, 1, 1), depends=["a"]),
        event("c", run(0, 1, 1), depends=["c"]),
    ]
    assert tables.paths(tables.jobs(tables.stages(events(spark, *rows)))).collect() == []


@pytest.mark.parametrize(
    ("by", "name"),
    [("klass, queue", "queue,klass"), ("", ""), ("worker,queue", "queue,worker"), ("tag", "tag")],
)
def test_a_grouping_is_known_whatever_the_order_of_its_parts(by: str, name: str) -> None:
    assert known(by) == name


@pytest.mark.parametrize(
    ("by", "why"),
    [
        ("colour", "'colour' is nothing to group by"),
        ("worker,tag", "by tag,worker nothing is kept"),
    ],
)
def test_a_grouping_that_is_not_kept_is_refused_by_name(by: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        known(by)
