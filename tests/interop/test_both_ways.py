"""Jobs of this library in qless-py, and the reverse."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from aioqless import (
    Client,
    Fail,
    Fair,
    Job,
    JobRecord,
    Key,
    Limit,
    NewJob,
    Settings,
    Unique,
    Worker,
    WrongState,
    job,
)
from tests.conftest import Until
from tests.interop.peer import at

DATA: list[Any] = [
    {},
    [],
    {"a": [], "b": {}},
    {"n": 12345678901234567},
    {"text": 'Grüße "\\" \u2028'},
    0,
    "",
    None,
    {"deep": [[[[1]]]]},
]


async def found(client: Client, jid: str) -> JobRecord:
    job = await client.jobs.get(jid)
    assert job is not None
    return job


@pytest.mark.parametrize("data", DATA)
async def test_data_of_qless_py_is_read(ours: Client, peer: Any, data: Any) -> None:
    peer.queues["mail"].put("Greet", data, jid="a")
    assert (await found(ours, "a")).data == data


@pytest.mark.parametrize("data", DATA)
async def test_data_is_read_by_qless_py(ours: Client, peer: Any, data: Any) -> None:
    await ours.queue("mail").put("Greet", data, jid="a")
    assert peer.queues["mail"].pop().data == data


async def test_both_clients_pop_in_the_same_order(ours: Client, peer: Any) -> None:
    for jid, priority in (("late", 5), ("first", -5), ("usual", 0)):
        await ours.queue("mail").put("Greet", jid=f"our-{jid}", priority=priority)
        peer.queues["mail"].put(
            "Greet", {}, jid=f"peer-{jid}", priority=-priority
        )  # in qless-py, a higher priority runs sooner
    order = ["our-first", "peer-first", "our-usual", "peer-usual", "our-late", "peer-late"]
    assert [each.jid for each in await ours.queue("mail").peek(count=10)] == order
    assert [each.jid for each in peer.queues["mail"].peek(10)] == order


async def test_job_alternates_between_both_clients(ours: Client, peer: Any) -> None:
    jid = peer.queues["one"].put("Greet", {"n": 1}, tags=["x"], retries=3)
    (mine,) = await ours.queue("one").pop()
    mine.data["n"] += 1
    assert await mine.complete("two") == "waiting"
    theirs = peer.queues["two"].pop()
    assert (theirs.data, theirs.tags, theirs.original_retries) == ({"n": 2}, ["x"], 3)
    theirs["n"] = 3
    assert theirs.complete("three") == "waiting"
    (mine,) = await ours.queue("three").pop()
    assert await mine.complete() == "complete" and mine.data == {"n": 3}
    done = await found(ours, jid)
    assert [stage["q"] for stage in done.history] == ["one", "two", "three"]
    assert [event["what"] for event in peer.jobs[jid].history] == ["put", "popped", "done"] * 3
    assert peer.jobs.complete() == [jid]


async def test_failures_of_either_client_are_listed_and_retried_by_the_other(
    ours: Client, peer: Any
) -> None:
    peer.queues["mail"].put("Greet", {}, jid="a")
    await ours.queue("mail").put("Greet", jid="b")
    (mine,) = await ours.queue("mail").pop()
    await mine.fail("full", group="disk")
    theirs = peer.queues["mail"].pop()
    theirs.fail("disk", "slow")
    assert peer.jobs.failed() == {"disk": 2} and await ours.jobs.failed_counts() == {"disk": 2}
    assert {each.failure["message"] for each in peer.jobs.failed("disk")["jobs"]} == {
        "full",
        "slow",
    }
    assert peer.unfail("disk", "mail", 1) == 1
    assert await ours.queue("mail").unfail("disk") == 1
    assert peer.jobs.failed() in ({}, []) and len(peer.queues["mail"]) == 2


async def test_retries_of_both_clients_are_counted_together(ours: Client, peer: Any) -> None:
    await ours.queue("mail").put("Greet", jid="a", retries=2)
    (mine,) = await ours.queue("mail").pop()
    assert await mine.retry() == 1
    theirs = peer.queues["mail"].pop()
    assert theirs.retry() == 0
    (mine,) = await ours.queue("mail").pop()
    assert await mine.retry(group="tired", message="no more") == -1
    assert peer.jobs["a"].failure["group"] == "tired"


async def test_delay_of_either_client_is_kept_by_both(ours: Client, peer: Any) -> None:
    peer.queues["mail"].put("Greet", {}, jid="theirs", delay=60)
    await ours.queue("mail").put("Greet", jid="ours", delay=60)
    assert (
        sorted(peer.queues["mail"].jobs.scheduled())
        == sorted(await ours.queue("mail").jids("scheduled"))
        == ["ours", "theirs"]
    )
    assert await ours.queue("mail").pop(5) == [] and peer.queues["mail"].pop() is None
    assert (
        len(ours_due := at(peer, 61, "pop", "mail", "peer", 5))
        and "ours" in ours_due
        and "theirs" in ours_due
    )
    for jid in ("ours", "theirs"):
        await ours.jobs.cancel(jid)


async def test_dependents_are_released_by_completion_in_the_other_client(
    ours: Client, peer: Any
) -> None:
    await ours.queue("mail").put("Greet", jid="our-first")
    peer.queues["mail"].put("Greet", {}, jid="peer-first")
    peer.queues["mail"].put("Greet", {}, jid="peer-second", depends=["our-first"])
    await ours.queue("mail").put("Greet", jid="our-second", depends=["peer-first"])
    assert sorted(peer.queues["mail"].jobs.depends()) == ["our-second", "peer-second"]
    (mine,) = await ours.queue("mail").pop()
    theirs = peer.queues["mail"].pop()
    assert (mine.jid, theirs.jid) == ("our-first", "peer-first")
    await mine.complete()
    theirs.complete()
    assert {(await found(ours, jid)).state for jid in ("our-second", "peer-second")} == {"waiting"}


async def test_lock_of_either_client_excludes_the_other_until_it_expires(
    ours: Client, peer: Any
) -> None:
    ours_queue = ours.queue("mail")
    await ours_queue.put("Greet", jid="a")
    theirs = peer.queues["mail"].pop()
    assert await ours_queue.pop() == []
    await ours.jobs.unlock("a")
    (mine,) = await ours_queue.pop()
    with pytest.raises(Exception, match=r"[Ll]ock|owner|worker"):
        theirs.complete()
    peer("timeout", "a")
    with pytest.raises(WrongState, match="not running"):
        await mine.complete()
    peer.queues["mail"].pop().complete()


async def test_qless_py_worker_is_notified_of_its_lost_lock(ours: Client, peer: Any) -> None:
    await ours.queue("mail").put("Greet", jid="a")
    heard = peer.redis.pubsub(ignore_subscribe_messages=True)
    heard.subscribe("ql:w:peer")
    heard.get_message(timeout=60)
    peer.queues["mail"].pop()
    await ours.jobs.unlock("a")
    assert '"lock_lost"' in heard.get_message(timeout=60)["data"]
    peer.queues["mail"].pop()
    await ours.jobs.cancel("a")
    assert '"canceled"' in heard.get_message(timeout=60)["data"]
    heard.close()


async def test_worker_stops_a_job_that_qless_py_takes_or_cancels(
    ours: Client, peer: Any, until: Until
) -> None:
    ends: dict[str, str] = {}

    @job(klass="Long")
    async def long(job: Job[Any]) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ends[job.jid] = str(job.stopped)

    for jid in ("taken", "cancelled"):
        peer.queues["mail"].put("Long", {}, jid=jid)
    async with Worker(ours, long, settings=Settings(queues=("mail",), poll=90)) as worker:
        await until(lambda: len(worker.running) == 2)
        peer.queues["mail"].pause()
        peer("timeout", "taken")
        peer("cancel", "cancelled")
        await until(lambda: len(ends) == 2)
        await until(lambda: not worker.running)
    assert set(ends.values()) == {"lost"} and (await found(ours, "taken")).state in (
        "stalled",
        "waiting",
        "running",
    )


@pytest.mark.parametrize("how", ["cancel", "move"])
async def test_limit_admits_the_next_job_when_qless_py_takes_one_from_a_worker(
    ours: Client, peer: Any, until: Until, how: str
) -> None:
    runs: list[str] = []

    @job(klass="Limited", limits=[Limit(max_concurrency=1)])
    async def limited(job: Job[Any]) -> None:
        runs.append(job.jid)
        await asyncio.sleep(60 if len(runs) == 1 else 0)

    first, second = [await ours.queue("mail").put(limited) for _ in range(2)]
    async with Worker(ours, limited, settings=Settings(queues=("mail",))):
        await until(lambda: runs)
        if how == "cancel":
            peer("cancel", runs[0])
        else:
            peer.jobs[runs[0]].move("elsewhere")
        await until(lambda: len(runs) == 2, 20)
    assert runs == [first, second]


async def test_tenant_whose_jobs_another_client_has_popped_has_none_that_wait(
    ours: Client, peer: Any
) -> None:
    mail = ours.queue("mail")
    for number in range(4):
        await mail.put("Greet", {"n": number}, fair=Fair(Key("a" if number < 3 else "b")))
    for _ in range(3):
        peer.queues["mail"].pop().complete()
    (left,) = await mail.tenants()
    assert (left.waiting, left.running) == (1, 0)


@pytest.mark.xfail(strict=True, reason="a put of another client doesn't delete the steps")
async def test_steps_are_made_again_after_another_client_has_put_the_job_again(
    ours: Client, peer: Any
) -> None:
    read: list[object] = []

    @job(klass="Read", retries=0)
    async def handler(job: Job[Any]) -> None:
        read.append(await job.step("read", lambda: asyncio.sleep(0, job.data["n"])))
        if len(read) == 1:
            raise Fail("broken")

    jid = await ours.queue("mail").put(handler, {"n": 1})
    async with Worker(ours, handler, settings=Settings(queues=("mail",))):
        assert (await ours.jobs.wait(jid, 60)).state == "failed"
        peer.queues["mail"].put("Read", {"n": 2}, jid=jid)
        assert (await ours.jobs.wait(jid, 60)).state == "complete"
    assert read == [1, 2]


async def test_job_of_another_client_with_a_great_priority_runs_and_is_counted_by_check(
    ours: Client, peer: Any
) -> None:
    for number in range(2):
        peer.queues["mail"].put("Note", {}, jid=f"{number}", priority=5000)
    (told,) = [each for each in await ours.check() if each.problem == "priority-too-great"]
    assert told.is_left_by_others and told.about["jobs"] == 2
    first = await found(ours, "0")
    assert first.priority == -5000
    await first.move("post")
    (running,) = await ours.queue("post").pop()
    await running.retry()
    (running,) = await ours.queue("post").pop()
    assert running.priority == -5000
    await running.complete()
    await (await ours.queue("mail").pop())[0].complete()
    with pytest.raises(ValueError, match="priority must be from -100 to 100"):
        await ours.queue("mail").put("Note", priority=5000)


async def test_worker_runs_jobs_of_qless_py_at_once_and_its_failures_are_visible_there(
    ours: Client, peer: Any, until: Until
) -> None:
    @job(klass="Break")
    async def breaks(job: Job[Any]) -> None:
        raise Fail("on purpose", group="broken")

    async with Worker(ours, breaks, settings=Settings(queues=("mail",), poll=90)) as worker:
        await until(lambda: worker.idle)
        peer.queues["mail"].put("Break", {}, jid="a")
        await until(lambda: peer.jobs.failed() == {"broken": 1})  # a poll is 90 s away


async def test_tags_tracking_priorities_and_config_are_shared(ours: Client, peer: Any) -> None:
    await ours.queue("mail").put("Greet", jid="a", tags=["red"])
    peer.jobs["a"].tag("blue")
    assert (await found(ours, "a")).tags == ["red", "blue"]
    assert peer.jobs.tagged("red")["jobs"] == ["a"]
    await (await found(ours, "a")).untag("red")
    assert peer.jobs.tagged("red")["jobs"] in ([], {})
    peer.jobs["a"].track()
    assert (await found(ours, "a")).tracked
    peer.jobs["a"].priority = 7
    assert (await found(ours, "a")).priority == -7
    peer.config["mail-heartbeat"] = 7
    assert await ours.config.get("mail-heartbeat") in (7, "7")
    await ours.config.set("heartbeat", 33)
    assert int(peer.config["heartbeat"]) == 33


async def test_limits_of_a_recurring_job_survive_another_client(ours: Client, peer: Any) -> None:
    recurring = await ours.queue("mail").recur("Greet", every=3600, jid="r", max_runs=3, jitter=0.1)
    theirs = peer.jobs["r"]
    theirs.priority = 7
    theirs.interval = 1800
    assert peer.queues["mail"].pop().jid == "r-1"
    await recurring.refresh()
    assert (recurring.max_runs, recurring.runs_left, recurring.jitter) == (3, 2, 0.1)
    await recurring.update(max_runs=1)
    assert recurring.ended and peer.queues["mail"].jobs.recurring() == []
    peer.queues["mail"].recur("Greet", {}, 60, jid="r")  # which starts it again, for them
    assert peer.queues["mail"].pop().jid == "r-2"
    await recurring.update(max_runs=1)
    assert recurring.ended


async def test_findings_that_ordinary_work_of_another_client_leaves_are_told_apart(
    ours: Client, peer: Any
) -> None:
    for number in range(3):
        await ours.queue("mail").put(
            NewJob("Greet", {"n": number}), unique=Key(f"{number}"), fair=Fair(Key("acme"))
        )
        peer.queues["mail"].pop().complete()
    left = await ours.check()
    assert {each.problem for each in left} == {"unique-without-job", "turn-not-waiting"}
    assert all(each.is_left_by_others for each in left)


@pytest.mark.parametrize("exhausted", [False, True])
async def test_debounced_put_runs_after_another_client_has_failed_the_first(
    ours: Client, peer: Any, exhausted: bool
) -> None:
    queue = ours.queue("mail")
    options: dict[str, Any] = {"unique": Unique(Key("report"), debounce=0.001), "retries": 0}
    first = await queue.put("Greet", {"n": 1}, **options)
    theirs = await asyncio.to_thread(_pop, peer)
    assert theirs.jid == first
    second = await queue.put("Greet", {"n": 2}, **options)
    assert (await found(ours, second)).state == "depends"
    if exhausted:
        theirs.retry()
    else:
        theirs.fail("broken", "no")
    assert (await found(ours, first)).state == "failed"
    await ours.internals.store.agenda(now=time.time() + 30)
    assert (await found(ours, second)).state in ("scheduled", "waiting")
    (job,) = await queue.pop()
    assert job.jid == second and job.data == {"n": 2}


def _pop(peer: Any) -> Any:
    while (job := peer.queues["mail"].pop()) is None:
        pass
    return job


async def test_recurring_jobs_of_either_client_are_put_by_any_pop(ours: Client, peer: Any) -> None:
    peer.queues["mail"].recur("Greet", {"of": "peer"}, 3600, jid="theirs")
    await ours.queue("mail").recur("Greet", {"of": "us"}, every=3600, jid="ours")
    mine = {each.jid: each.data for each in await ours.queue("mail").pop(10)}
    assert mine == {"theirs-1": {"of": "peer"}, "ours-1": {"of": "us"}}
    assert sorted(peer.queues["mail"].jobs.recurring()) == ["ours", "theirs"]
    later = at(peer, 3601, "pop", "mail", "peer", 10)
    assert '"theirs-2"' in later and '"ours-2"' in later
    for jid in ("theirs-1", "theirs-2", "ours-1", "ours-2"):
        await ours.jobs.cancel(jid)
    for recurring in await ours.recurring.page("mail"):  # the later pop moved them ahead
        await recurring.cancel()


async def test_statistics_of_both_clients_are_counted_together(ours: Client, peer: Any) -> None:
    await ours.queue("mail").put_many(NewJob("Greet", jid=jid) for jid in "abcd")
    for _ in range(2):
        peer.queues["mail"].pop().complete()
        (mine,) = await ours.queue("mail").pop()
        await mine.complete()
    theirs, mine_ = peer.queues["mail"].stats(), await ours.queue("mail").stats()
    assert theirs["run"]["count"] == mine_.run.count == 4
    assert theirs["run"]["histogram"] == mine_.run.histogram


async def test_qless_py_lists_queues_and_workers(ours: Client, peer: Any) -> None:
    await ours.queue("mail").put("Greet", jid="a")
    await ours.queue("mail").pop(worker="ann")
    (counts,) = peer.queues.counts
    assert (counts["name"], counts["running"], counts["waiting"]) == ("mail", 1, 0)
    assert {each["name"]: each["jobs"] for each in peer.workers.counts} == {"ann": 1}
    assert peer.workers["ann"]["jobs"] == ["a"]
