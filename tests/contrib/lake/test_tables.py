"""Each table, made of literal rows."""

from __future__ import annotations

import random
import statistics
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from aioqless.contrib.lake import tables
from aioqless.contrib.lake.schema import TABLES
from aioqless.contrib.lake.tables.bins import QLESS, span
from aioqless.contrib.lake.tables.groups import known
from tests.contrib.lake.lakes import comparable
from tests.contrib.lake.literal import Row, at, attempts, by, event, events, rows, run

TODAY, TOMORROW = date(2026, 11, 21), date(2026, 11, 22)
DAY, HOUR = 86_400, 3600


def has_the_columns_of(table: pa.Table, name: str) -> bool:
    expected = TABLES[name].schema
    return set(table.column_names) == set(expected.names) and all(
        table.schema.field(each.name).type == each.type for each in expected
    )


def jobs(*given: dict[str, Any]) -> pa.Table:
    return tables.merge_jobs(tables.jobs(events(*given)))


def times(*given: dict[str, Any]) -> pa.Table:
    return tables.merge_times(tables.times(attempts(*given)))


def counts(*given: dict[str, Any]) -> pa.Table:
    return tables.merge_counts(tables.counts(events(*given), attempts(*given)))


def failures(*given: dict[str, Any]) -> pa.Table:
    return tables.merge_failures(tables.failures(events(*given), attempts(*given)))


def throughput(*given: dict[str, Any]) -> pa.Table:
    return tables.merge_throughput(tables.throughput(attempts(*given)))


def paths(*given: dict[str, Any]) -> pa.Table:
    made = jobs(*given)
    none = made.slice(0, 0)
    return tables.paths(made, none, TABLES["gold/paths"].schema.empty_table())


def only(found: list[Row], **values: Any) -> list[Row]:
    return [row for row in found if all(row[name] == value for name, value in values.items())]


def test_each_attempt_is_a_run_with_its_times_to_the_microsecond() -> None:
    lost = run(0, 1, 61, "lost", worker="w0")
    table = attempts(
        event("a", lost, run(61, 62.5, 62.500001, fence=2), tags=["x"]),
        event("b", run(None, 3, 4)),
        event("c"),
    )
    assert has_the_columns_of(table, "silver/runs")
    found = by(table, "jid", "attempt")
    assert set(found) == {("a", 1), ("a", 2), ("b", 1)}
    first, second = found["a", 1], found["a", 2]
    assert (first.how, first.worker, first.wait, first.run) == ("lost", "w0", 1.0, 60.0)
    assert (second.how, second.wait, second.run, second.tags, second.fence) == (
        "complete",
        1.5,
        1e-06,
        ["x"],
        2,
    )
    assert found["b", 1].wait is None


def test_job_is_one_row_with_its_stages_in_order() -> None:
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
        "a",
        run(0, 1, 2, "retried"),
        run(2, 4, 10, "advance"),
        next_queue="post",
        tags=["x"],
        id="8-0",
    )
    table = jobs(second, first, event("b", run(0, 1, 2, "fail", failure_group="g", message="m")))
    assert has_the_columns_of(table, "silver/jobs")
    found = by(table, "jid")
    job = found["a"]
    assert [(stage.queue, stage.what, stage.attempts) for stage in job.stages] == [
        ("mail", "advance", 2),
        ("post", "complete", 1),
    ]
    assert (job.queue, job.klass, job.state, job.depends) == ("post", "Send", "complete", ["z"])
    assert (job.attempts, job.wait, job.run) == (3, 1 + 2 + 2, 1 + 6 + 3)
    assert (job.date, found["b"].state, found["b"].failure_group) == (TODAY, "failed", "g")


def test_row_of_a_job_has_its_last_hundred_stages_and_totals_of_all() -> None:
    retries = [event("daily", run(n, n + 1, n + 3), id=f"{n}-0") for n in range(130)]
    old = jobs(*retries[:120])
    (row,) = rows(tables.merge_jobs(pa.concat_tables([old, tables.jobs(events(*retries[120:]))])))
    assert len(row.stages) == 100 and row.stages[0].put == at(30) and row.stages[-1].put == at(129)
    assert (row.attempts, row.wait, row.run, row.put) == (130, 130, 260, at(0))


def test_times_are_kept_by_queue_klass_worker_tag_and_combinations() -> None:
    given = [
        event("a", run(0, 2, 6), tags=["x", "y"]),
        event("b", run(0, 4, 5), klass="Send"),
        event("c", run(0, 6, 6.5, "fail", failure_group="g"), tags=["x"]),
    ]
    table = times(*given)
    assert has_the_columns_of(table, "gold/times")
    found = by(table, "grouping", "queue", "klass", "tag", "worker", "kind")
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


def test_times_are_on_the_utc_day_of_the_pop_for_waits_and_of_the_end_for_runs() -> None:
    found = by(only(rows(times(event("a", run(0, DAY - 1, DAY + 4)))), grouping=""), "kind")
    assert (found["wait"].date, found["run"].date) == (TODAY, TOMORROW)


@pytest.mark.parametrize(
    ("seconds", "fine", "coarse"),
    [
        (0, "s0", "s0"),
        (59.999999, "s59", "s59"),
        (60, "m1", "m1"),
        (HOUR - 1, "m59", "m59"),
        (HOUR, "q4", "h1"),
        (2 * HOUR - 1, "q7", "h1"),
        (DAY - 1, "q95", "h23"),
        (DAY, "h24", "d1"),
        (3 * DAY - 1, "h71", "d2"),
        (3 * DAY, "d3", "d3"),
        (40 * DAY, "d40", "d40"),
    ],
)  # fmt: skip
def test_name_of_a_bin_says_its_range(seconds: float, fine: str, coarse: str) -> None:
    start, end = span(fine)
    assert start <= seconds < end
    if coarse in QLESS:
        assert span(coarse)[0] <= seconds < span(coarse)[1]


def test_times_have_a_fine_histogram_and_that_of_qless() -> None:
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
    given = [event(str(wait), run(-wait, 0, 1)) for wait in waits]
    (row,) = only(rows(times(*given)), grouping="", kind="wait")
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


def test_merged_days_equal_the_statistics_of_all_their_times() -> None:
    # Far from 0 and close together, where sums of squares lose their digits.
    waits = [10**6 + number * 0.001 for number in range(40)]
    days = [number % 3 * DAY for number in range(40)]
    given = [
        event(f"{number}", run(day - wait, day, day + 1))
        for number, (wait, day) in enumerate(zip(waits, days, strict=True))
    ]
    daily = times(*given)
    daily = daily.filter(pc.equal(daily["grouping"], "queue"))
    (row,) = only(rows(tables.merged_times(daily, ["queue"])), kind="wait")
    assert row["count"] == 40 and row.queue == "mail"
    assert row.mean == pytest.approx(statistics.mean(waits), rel=1e-12)
    assert row.variance == pytest.approx(statistics.variance(waits), rel=1e-4)
    assert min(waits) <= row.p50 <= max(waits)
    assert sum(row.bins.values()) == 40


@pytest.mark.parametrize("number", [1, 2, 7, 2000])
def test_quantiles_are_within_six_thousandths_of_the_true_value(number: int) -> None:
    chance = random.Random(number)
    waits = sorted(round(chance.lognormvariate(0, 3), 6) for _ in range(number))
    given = [event(f"{n}", run(-wait, 0, 1)) for n, wait in enumerate(waits)]
    (row,) = only(rows(times(*given)), grouping="", kind="wait")
    for name, rank in (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)):
        true = next(wait for n, wait in enumerate(waits, 1) if n >= rank * number)
        assert row[name] == pytest.approx(true, rel=0.006), name


def test_ends_of_stages_and_runs_are_counted() -> None:
    given = [
        event(
            "a",
            run(0, 1, 2, "retried"),
            run(2, 3, 4, "timed-out"),
            run(4, 5, 6, "lost"),
            run(6, 7, 8),
            tags=["x"],
        ),
        event("b", run(0, 1, 2, "advance")),
        event("c", run(0, 1, 2, "released"), run(2, 3, 4, "fail", failure_group="g")),
        event("d", ended=3),
        event("e", ended=3, what="move", tags=["x"]),
    ]
    table = counts(*given)
    assert has_the_columns_of(table, "gold/counts")
    found = by(table, "grouping", "tag", "worker")
    expected: dict[str, Any] = {
        "completed": 1,
        "advanced": 1,
        "failed": 1,
        "cancelled": 1,
        "moved": 1,
        "runs": 7,
    }
    everything = found["", None, None]
    assert {name: everything[name] for name in expected} == expected
    assert [everything[name] for name in ("retried", "released", "timed_out", "lost")] == [
        1,
        1,
        1,
        1,
    ]
    assert (found["tag", "x", None].moved, found["tag", "x", None].completed) == (1, 1)
    assert ("worker", None, None) not in found and found["worker", None, "w1"].runs == 7


def test_failures_have_counts_times_klasses_and_samples() -> None:
    failing = [
        event(
            f"j{number}",
            run(0, 1, HOUR * number, "fail", failure_group="g", message="x" * 5000 + str(number)),
        )
        for number in range(1, 9)
    ]
    retried = event(
        "r", run(0, 1, 2, "retried", failure_group="g", message="soon"), run(3, 4, 5), klass="Send"
    )
    table = failures(*failing, retried, event("fine", run(0, 1, 2)))
    assert has_the_columns_of(table, "gold/failures")
    (row,) = rows(table)
    assert (row["failure_group"], row["count"], row.retried, row.klasses) == (
        "g",
        8,
        1,
        ["Greet", "Send"],
    )
    assert (row.first_seen.timestamp(), row.last_seen.timestamp()) == (
        at(2).timestamp(),
        at(8 * HOUR).timestamp(),
    )
    assert row.by_hour == [0, *[1] * 8, *[0] * 15]
    assert [sample.jid for sample in row.samples] == ["j8", "j7", "j6", "j5", "j4"]
    assert row.samples[0].message.endswith("xx8") and len(row.samples[0].message) == 2001


def test_throughput_counts_moments_and_the_mean_number_of_waiting_and_running_jobs() -> None:
    table = throughput(
        event("a", run(30, 90, 150)), event("b", run(60, 90, 400, "fail", failure_group="g"))
    )
    assert has_the_columns_of(table, "gold/throughput")
    found = sorted(rows(table), key=lambda row: row.start)
    assert [round(row.start.timestamp() - at(0).timestamp()) for row in found] == [
        0,
        60,
        120,
        180,
        240,
        300,
        360,
    ]
    assert [(row.put, row.popped, row.completed, row.failed) for row in found[:4]] == [
        (1, 0, 0, 0),
        (1, 2, 0, 0),
        (0, 0, 1, 0),
        (0, 0, 0, 0),
    ]
    assert [row.waiting for row in found[:3]] == [0.5, 1.0, 0.0]
    assert [row.running for row in found] == pytest.approx([0, 1.0, 1.5, 1, 1, 1, 40 / 60])


def test_job_that_waits_and_runs_over_midnight_does_so_on_both_days() -> None:
    runs = attempts(event("a", run(DAY - HOUR, DAY + HOUR, 3 * DAY + 60)))
    found = by(tables.throughput(runs, width=HOUR), "date", "start")
    total = {day: (0.0, 0.0) for day, _ in found}
    for (day, _), row in found.items():
        total[day] = (total[day][0] + row.waiting, total[day][1] + row.running)
    assert list(total[TODAY]) == [1, 0] and list(total[TOMORROW]) == [1, 23]
    assert sorted(total) == [date(2026, 11, number) for number in (21, 22, 23, 24)]
    assert total[date(2026, 11, 23)] == (0, 24) and total[date(2026, 11, 24)][1] == pytest.approx(
        1 / 60
    )


def test_wait_or_run_of_more_than_a_month_counts_on_its_last_31_days() -> None:
    for given, first in (
        (run(-at(0).timestamp(), 5, 9), date(1970, 1, 1)),
        (run(-400 * DAY, -300 * DAY, 9), date(2025, 10, 17)),
    ):
        table = tables.throughput(attempts(event("a", given)), width=DAY)
        placed = sorted({row.date for row in rows(table)})
        assert placed[0] == first and placed[-1] == TODAY and placed[-31] == date(2026, 10, 22)
        assert 32 <= len(placed) <= 63


def test_critical_path_is_the_chain_that_decided_when_the_job_could_begin() -> None:
    given = [
        event("slow", run(0, 1, 50)),
        event("quick", run(0, 1, 5)),
        event("middle", run(50, 51, 60), depends=["slow", "quick"]),
        event("other", run(0, 1, 55)),
        event("report", run(60, 65, 70), depends=["middle", "other", "never"]),
        event("alone", run(0, 1, 2), depends=["gone"]),
    ]
    table = paths(*given)
    assert has_the_columns_of(table, "gold/paths")
    found = by(table, "jid")
    assert set(found) == {"middle", "report"}
    path = found["report"]
    assert [step.jid for step in path.steps] == ["slow", "middle", "report"]
    assert (path.depth, path.seconds, path.running, path.waiting) == (3, 70, 49 + 9 + 5, 7)
    assert [step.jid for step in found["middle"].steps] == ["slow", "middle"]


def test_path_goes_on_from_the_known_path_of_a_dependency() -> None:
    first = [event("slow", run(0, 1, 50)), event("middle", run(50, 51, 60), depends=["slow"])]
    last = event("report", run(60, 65, 70), depends=["middle"])
    known = paths(*first)
    later = tables.paths(jobs(last), jobs(*first), known)
    assert by(later, "jid")["report"] == by(paths(*first, last), "jid")["report"]


def test_jobs_that_wait_for_each_other_have_no_path() -> None:
    given = [
        event("a", run(0, 1, 1), depends=["b"]),
        event("b", run(0, 1, 1), depends=["a"]),
        event("c", run(0, 1, 1), depends=["c"]),
    ]
    assert paths(*given).num_rows == 0


@pytest.mark.parametrize(
    ("text", "name"),
    [("klass, queue", "queue,klass"), ("", ""), ("worker,queue", "queue,worker"), ("tag", "tag")],
)
def test_grouping_is_known_in_any_order_of_its_parts(text: str, name: str) -> None:
    assert known(text) == name


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("colour", "'colour' is nothing to group by"),
        ("worker,tag", "by tag,worker nothing is kept"),
    ],
)
def test_grouping_that_is_not_kept_is_refused_by_name(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        known(text)


MERGED = {
    "silver/jobs": (jobs, tables.merge_jobs),
    "gold/times": (times, tables.merge_times),
    "gold/counts": (counts, tables.merge_counts),
    "gold/failures": (failures, tables.merge_failures),
    "gold/throughput": (throughput, tables.merge_throughput),
}


@pytest.mark.parametrize("name", MERGED)
@pytest.mark.parametrize("seed", range(3))
def test_table_of_old_and_new_events_merged_is_that_of_all_events(name: str, seed: int) -> None:
    make, merge = MERGED[name]
    every = _events(random.Random(seed), 60)
    cut = len(every) // 3
    old, new, all_ = make(*every[:cut]), make(*every[cut:]), make(*every)
    assert has_the_columns_of(all_, name) and all_.num_rows > 0
    assert _comparable(merge(pa.concat_tables([old, new]))) == _comparable(all_)
    assert _comparable(merge(pa.concat_tables([new, old]))) == _comparable(all_)
    assert _comparable(merge(all_)) == _comparable(all_)


def _events(chance: random.Random, number: int) -> list[dict[str, Any]]:
    """Events of all kinds, in several days, queues and namespaces, some of the same job."""
    made = []
    for n in range(number):
        start = chance.uniform(0, 2 * DAY)
        attempts = []
        for how in [
            *chance.choices(["retried", "lost", "released", "timed-out"], k=chance.randrange(3)),
            chance.choice(["complete", "advance", "fail", "fail", "move"]),
        ]:
            popped = start + chance.choice([0, 0.001, 7, 90, DAY])
            ended = popped + chance.choice([0.000001, 1, 61, 4000])
            group = {"failure_group": chance.choice("gh")} if how in ("fail", "retried") else {}
            put = chance.choice([None, start, start])
            attempts.append(run(put, popped, ended, how, message=f"m{n}", **group))
            start = ended
        made.append(
            event(
                f"j{n % (number // 2)}",
                *attempts,
                id=f"{1000 + n}-0",
                queue=chance.choice(["mail", "post"]),
                klass=chance.choice(["Greet", "Send"]),
                namespace=chance.choice(["ql", "{other}"]),
                tags=chance.choice([[], ["x"], ["y", "x", "x"], [""]]),
                depends=chance.choice([[], ["j1"], ["j2", "j1"]]),
                spawned_from=chance.choice([None, "r1", "r2"]),
                date=chance.choice([TODAY, TOMORROW]),
            )
        )
    return made


def _comparable(table: pa.Table) -> list[str]:
    return comparable(rows(table))
