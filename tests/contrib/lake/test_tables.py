"""Each table, made of literal rows."""

from __future__ import annotations

import random
import statistics
from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from aioqless.contrib.lake.read.database import open_database, read_named
from aioqless.contrib.lake.read.statistics import add_up
from aioqless.contrib.lake.schema import COUNTS, DERIVED, TABLES
from tests.contrib.lake.lakes import (
    DAY,
    HOUR,
    TODAY,
    TOMORROW,
    at,
    by,
    event,
    made,
    rows,
    run,
)


def made_whole(name: str, *given: Any) -> pa.Table:
    """A table with exactly its declared columns."""
    table = made(name, *given)
    assert set(table.column_names) == set(TABLES[name].schema.names)
    return table


def test_each_attempt_is_a_run_with_its_times_to_the_microsecond() -> None:
    lost = run(0, 1, 61, "lost", worker="w0")
    more: dict[str, Any] = {"run_dues": [None, at(80)], "run_versions": ["v1", "v2"], "tags": ["x"]}
    first = event("a", lost, run(61, 62.5, 62.500001, fence=2), **more)
    table = made_whole("silver/runs", first, event("b", run(None, 3, 4)), event("c"))
    names = ("how", "worker", "wait", "run", "tags", "fence", "due", "version")
    found = {key: [row[name] for name in names] for key, row in by(table, "jid", "attempt").items()}
    assert found == {
        ("a", 1): ["lost", "w0", 1.0, 60.0, ["x"], 1, None, "v1"],
        ("a", 2): ["complete", "w1", 1.5, 1e-06, ["x"], 2, at(80), "v2"],
        ("b", 1): ["complete", "w1", None, 1.0, [], 1, None, None],
    }


def test_a_run_is_late_if_it_begins_long_after_it_was_due() -> None:
    table = made(
        "late",
        event("in-time", run(0, 100, 101), run_dues=[at(99)]),
        event("late", run(0, 180, 181), run_dues=[at(99)]),
        event("waited", run(0, 61, 62)),
        event("expired", run(0, 30, 31, "fail", failure_group="mail-expired")),
        late=read_named("late"),
    )
    (row,) = rows(table)
    assert (row.runs, row.late, row.expired, row.longest) == (4, 2, 1, 81)


def test_job_is_one_row_with_its_stages_in_order() -> None:
    more = {"queue": "post", "klass": "Send", "depends": ["z"], "date": TOMORROW, "id": "9-0"}
    second = event("a", run(10, 12, 15), **more)
    runs = run(0, 1, 2, "retried"), run(2, 4, 10, "advance")
    first = event("a", *runs, next_queue="post", tags=["x"], id="8-0")
    failed = event("b", run(0, 1, 2, "fail", failure_group="g", message="m"))
    found = by(made("jobs", second, first, failed), "jid")
    job = found["a"]
    stages = [(stage.queue, stage.what, stage.attempts) for stage in job.stages]
    assert stages == [("mail", "advance", 2), ("post", "complete", 1)]
    assert (job.queue, job.klass, job.state, job.depends) == ("post", "Send", "complete", ["z"])
    assert (job.attempts, job.wait, job.run) == (3, 1 + 2 + 2, 1 + 6 + 3)
    assert (job.date, found["b"].state, found["b"].failure_group) == (TOMORROW, "failed", "g")


def test_row_of_a_job_has_its_last_hundred_stages_and_totals_of_all() -> None:
    retries = [event("daily", run(n, n + 1, n + 3), id=f"{n}-0") for n in range(130)]
    (row,) = rows(made("jobs", *retries))
    assert len(row.stages) == 100 and row.stages[0].put == at(30) and row.stages[-1].put == at(129)
    assert (row.attempts, row.wait, row.run, row.put) == (130, 130, 260, at(0))


def test_times_are_kept_by_queue_and_class_by_tag_and_by_worker() -> None:
    given = [
        event("a", run(0, 2, 6), tags=["x", "y", "x"]),
        event("b", run(0, 4, 5), tags=["x"]),
        event("c", run(0, 6, 6.5, "fail", failure_group="g"), klass="Send"),
    ]
    found = by(made_whole("gold/klasses", *given), "queue", "klass")
    wait = found["mail", "Greet"].wait
    assert (wait["count"], wait.mean, wait.variance, wait.least, wait.most) == (2, 3, 2, 2, 4)
    assert dict(wait.histogram) == {"s2": 1, "s4": 1} and (wait.p50, wait.p99) == (2, 4)
    send = found["mail", "Send"]
    assert send.run is None and send.spent.mean == 0.5
    by_tag = by(made("gold/tags", *given), "klass", "tag")
    assert set(by_tag) == {("Greet", "x"), ("Greet", "y")}
    assert by_tag["Greet", "x"].wait.mean == 3 and by_tag["Greet", "y"].wait.mean == 2
    assert by(made("gold/workers", *given), "worker")["w1"].run.mean == 2.5


def test_stage_belongs_to_the_day_of_its_end_with_all_its_runs() -> None:
    given = event("a", run(0, 1, 2, "retried"), run(2, DAY, DAY + 4), date=TOMORROW)
    for name in DERIVED:
        assert {row.date for row in rows(made(name, given))} <= {TOMORROW}, name
    (row,) = rows(made("gold/klasses", given))
    assert (row.date, row.runs, row.retried, row.completed) == (TOMORROW, 2, 1, 1)


def test_times_have_the_histogram_of_qless() -> None:
    expected = {
        "s0": 0, "s59": 59.999999, "m1": 60, "m59": HOUR - 1, "h1": HOUR, "h23": DAY - 1, "d1": DAY,
        "d2": 3 * DAY - 1, "d40": 40 * DAY,
    }  # fmt: skip
    given = [event(name, run(-wait, 0, 1), klass=name) for name, wait in expected.items()]
    for klass, row in by(made("gold/klasses", *given), "klass").items():
        assert dict(row.wait.histogram) == {klass: 1}


def added(*given: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the statistics of all days by queue, as the macro of users finds them, too."""
    with open_database() as database:
        database.register("klasses", made("gold/klasses", *given))
        found = {row["key"][0]: row for row in add_up(database, "klasses", ["queue"])}
        quantiles = database.execute(
            "SELECT queue, percentile(list(wait.log_bins), 0.95), "
            "percentile(list(spent.log_bins), 0.5) FROM klasses GROUP BY queue"
        ).fetchall()
    assert len(quantiles) == len(found)
    for queue, p95, none in quantiles:
        assert p95 == pytest.approx(found[queue]["wait"]["p95"], rel=0.006) and none is None
    return found


def test_added_days_equal_the_statistics_of_all_their_times() -> None:
    # Far from 0 and close together, where sums of squares lose their digits.
    waits = [10**6 + number * 0.001 for number in range(40)]
    found = added(
        *(
            event(f"{n}", run(-wait, 0, 1), date=TODAY if n % 3 else TOMORROW)
            for n, wait in enumerate(waits)
        )
    )
    (row,) = found.values()
    assert row["wait"]["count"] == 40 and row["key"] == ["mail"]
    assert row["wait"]["mean"] == pytest.approx(statistics.mean(waits), rel=1e-12)
    assert row["wait"]["variance"] == pytest.approx(statistics.variance(waits), rel=1e-4)
    assert sum(row["wait"]["log_bins"].values()) == 40


def test_added_quantiles_are_within_six_thousandths_of_the_true_value() -> None:
    """Of days of one queue each, with these numbers of waits."""
    waits, days = dict[str, list[float]](), []
    for number in (1, 2, 7, 2000):
        chance, queue = random.Random(number), str(number)
        waits[queue] = sorted(round(chance.lognormvariate(0, 3), 6) for _ in range(number))
        days += [
            event(f"{queue} {n}", run(-w, 0, 0), queue=queue, date=date(2026, 1, 1 + n % 3))
            for n, w in enumerate(waits[queue])
        ]
    found = added(*days)
    of_day = by(made("gold/klasses", *(each | {"date": TODAY} for each in days)), "queue")
    assert found.keys() == of_day.keys() == waits.keys()
    for queue, expected in waits.items():
        for name, rank in (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)):
            true = next(wait for n, wait in enumerate(expected, 1) if n >= rank * len(expected))
            assert of_day[queue].wait[name] == pytest.approx(true, rel=0.012), (queue, name)
            assert found[queue]["wait"][name] == pytest.approx(true, rel=0.006), (queue, name)
        assert found[queue]["run"]["p99"] < 1e-5


def test_percentiles_of_each_group_are_of_its_own_bins() -> None:
    groups = range(30)
    bins = [(n, [{10 * n + each: 1 for each in range(n + 1)}] * 2) for n in groups]
    with open_database() as database:
        database.execute("CREATE TABLE many (n BIGINT, bins MAP(BIGINT, BIGINT)[])")
        database.executemany("INSERT INTO many VALUES ($1, $2)", bins)
        for share, width in ((0.01, 10), (1, 11)):
            found = database.execute(
                "SELECT percentile(bins, $1) FROM many ORDER BY n", [share]
            ).fetchall()
            expected = [2 ** ((width * n + 0.5) / 64) for n in groups]
            assert [value for (value,) in found] == pytest.approx(expected)


def test_ends_of_stages_and_runs_are_counted() -> None:
    runs = [run(0, 1, 2, "retried"), run(2, 3, 4, "timed-out"), run(4, 5, 6, "lost"), run(6, 7, 8)]
    given = [
        event("a", *runs, tags=["x"]),
        event("b", run(0, 1, 2, "advance")),
        event("c", run(0, 1, 2, "released"), run(2, 3, 4, "fail", failure_group="g")),
        event("d", ended=3),
        event("e", ended=3, what="move", tags=["x"]),
    ]
    (everything,) = rows(made("gold/klasses", *given))
    counts = {name: everything[name] for name in COUNTS}
    assert counts == dict.fromkeys(COUNTS, 1) | {"runs": 7}
    (tag,) = rows(made("gold/tags", *given))
    assert (tag.tag, tag.moved, tag.completed) == ("x", 1, 1)
    (worker,) = rows(made("gold/workers", *given))
    assert (worker.worker, worker.runs) == ("w1", 7)


def test_failures_have_counts_times_klasses_and_samples() -> None:
    failing = [
        event(f"j{n}", run(0, 1, HOUR * n, "fail", failure_group="g", message="x" * 5000 + str(n)))
        for n in range(1, 9)
    ]
    soon = run(0, 1, 2, "retried", failure_group="g", message="soon")
    retried = event("r", soon, run(3, 4, 5), klass="Send")
    (row,) = rows(made_whole("gold/failures", *failing, retried, event("fine", run(0, 1, 2))))
    assert (row["failure_group"], row["count"], row.retried) == ("g", 8, 1)
    assert row.klasses == ["Greet", "Send"]
    assert (row.first_seen, row.last_seen) == (at(2), at(8 * HOUR))
    assert row.by_hour == [0, *[1] * 8, *[0] * 15]
    assert [sample.jid for sample in row.samples] == ["j8", "j7", "j6", "j5", "j4"]
    assert row.samples[0].message.endswith("xx8") and len(row.samples[0].message) == 2001


def test_throughput_counts_moments_and_the_mean_number_of_waiting_and_running_jobs() -> None:
    failing = event("b", run(60, 90, 400, "fail", failure_group="g"))
    table = made_whole("gold/throughput", event("a", run(30, 90, 150)), failing)
    found = sorted(rows(table), key=lambda row: row.start)
    assert [row.start for row in found] == [at(60 * number) for number in range(7)]
    moments = [(row.put, row.popped, row.completed, row.failed) for row in found[:4]]
    assert moments == [(1, 0, 0, 0), (1, 2, 0, 0), (0, 0, 1, 0), (0, 0, 0, 0)]
    assert [row.waiting for row in found[:3]] == [0.5, 1.0, 0.0]
    assert [row.running for row in found] == pytest.approx([0, 1.0, 1.5, 1, 1, 1, 40 / 60])


def test_job_that_waits_and_runs_over_midnight_does_so_on_both_days() -> None:
    given = event("a", run(DAY - HOUR, DAY + HOUR, 3 * DAY + 60))
    found = by(made("gold/throughput", given, micros=HOUR * 1_000_000), "start")
    total = {start.date(): (0.0, 0.0) for start in found}
    for start, row in found.items():
        day = start.date()
        total[day] = (total[day][0] + row.waiting, total[day][1] + row.running)
    expected = [(21, 1, 0), (22, 1, 23), (23, 0, 24), (24, 0, pytest.approx(1 / 60))]
    assert total == {date(2026, 11, day): (waits, runs) for day, waits, runs in expected}


def test_wait_or_run_of_more_than_a_month_counts_on_its_last_31_days() -> None:
    for given, first in (
        (run(-at(0).timestamp(), 5, 9), date(1970, 1, 1)),
        (run(-400 * DAY, -300 * DAY, 9), date(2025, 10, 17)),
    ):
        table = made("gold/throughput", event("a", given), micros=DAY * 1_000_000)
        placed = sorted({row.start.date() for row in rows(table)})
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
    found = by(made("paths", *given), "jid")
    assert set(found) == {"middle", "report"}
    path = found["report"]
    assert [step.jid for step in path.steps] == ["slow", "middle", "report"]
    assert (path.depth, path.seconds, path.running, path.waiting) == (3, 70, 49 + 9 + 5, 7)
    assert [step.jid for step in found["middle"].steps] == ["slow", "middle"]


def test_path_of_a_long_chain_has_its_last_ninety_jobs() -> None:
    chain = [
        event(f"j{n}", run(n, n, n + 1), depends=[f"j{n - 1}"] if n else []) for n in range(120)
    ]
    path = by(made("paths", *chain), "jid")["j119"]
    assert [step.jid for step in path.steps] == [f"j{n}" for n in range(30, 120)]
    assert (path.depth, path.seconds, path.running) == (90, 90, 90)


def test_jobs_that_wait_for_each_other_have_no_path() -> None:
    given = [
        event("a", run(0, 1, 1), depends=["b"]),
        event("b", run(0, 1, 1), depends=["a"]),
        event("c", run(0, 1, 1), depends=["c"]),
    ]
    assert made("paths", *given).num_rows == 0
