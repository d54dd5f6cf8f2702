"""Which queues workers serve, and which they don't."""

from __future__ import annotations

from aioqless.client.coverage import find_coverage
from aioqless.client.queue_statistics import QueueOverview
from aioqless.client.workers import WorkerCounts

NOW = 1000.0


def queue(name: str, *, waiting: int = 0, running: int = 0) -> QueueOverview:
    return QueueOverview(
        name=name, waiting=waiting, running=running, stalled=0, scheduled=0, depends=0, recurring=0
    )


def worker(*queues: str, alive: bool = True) -> WorkerCounts:
    return WorkerCounts(name="w", jobs=0, stalled=0, seen=NOW, alive=alive, queues=list(queues))


def test_queue_with_jobs_and_no_worker_is_unserved() -> None:
    coverage = find_coverage([queue("mail", waiting=2), queue("other")], [worker("mial")], NOW)
    (gap,) = coverage.unserved
    assert (gap.queue, gap.jobs, gap.similar) == ("mail", 2, "mial")
    assert str(gap) == "2 jobs wait in mail, which no worker serves; did you mean mial?"


def test_queue_of_a_worker_that_nobody_puts_into_is_unused() -> None:
    coverage = find_coverage([queue("mail", waiting=1)], [worker("mial", "mail-*")], NOW)
    (gap,) = coverage.unused
    assert str(gap) == "a worker serves mial, into which no job was put; did you mean mail?"


def test_queue_with_jobs_and_workers_is_no_misspelling_of_another() -> None:
    queues = [queue("crm-low", waiting=9), queue("crm-lows", waiting=1), queue("mail")]
    workers = [worker("crm-lows"), worker("fraud-low"), worker("mial", "mail")]
    coverage = find_coverage(queues, workers, NOW)
    assert [(gap.queue, gap.similar) for gap in coverage.unserved] == [("crm-low", None)]
    assert [(gap.queue, gap.similar) for gap in coverage.unused] == [
        ("fraud-low", None),
        ("mial", None),
    ]


def test_names_are_not_compared_when_there_are_very_many() -> None:
    for count, similar in ((10, "mial"), (5000, None)):
        queues = [queue("mail", waiting=1)]
        queues += [queue(f"{number:0500}", waiting=1) for number in range(count)]
        coverage = find_coverage(queues, [worker("mial", "post")], NOW)
        assert coverage.unserved[0].similar == similar and len(coverage.unused) == 2


def test_workers_are_counted_by_queue_and_pattern() -> None:
    workers = [worker("mail"), worker("mail*", "mail"), worker("post")]
    coverage = find_coverage([queue("mail", waiting=1), queue("mail-eu", waiting=1)], workers, NOW)
    assert coverage.workers == {"mail": 2, "mail-eu": 1, "post": 1}
    assert coverage.unserved == []


def test_queue_whose_jobs_run_is_served_by_someone() -> None:
    assert find_coverage([queue("desk", waiting=3, running=1)], [], NOW).unserved == []


def test_worker_that_died_serves_nothing() -> None:
    coverage = find_coverage([queue("mail", waiting=1)], [worker("mail", alive=False)], NOW)
    assert [gap.queue for gap in coverage.unserved] == ["mail"] and coverage.unused == []


def test_workers_that_do_not_say_what_they_serve_are_counted() -> None:
    peer = WorkerCounts(name="ruby", jobs=0, stalled=0, seen=NOW)
    assert find_coverage([], [peer, worker("mail")], NOW).silent == 1
