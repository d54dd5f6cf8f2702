"""Reading and changing jobs."""

from __future__ import annotations

import time
from typing import Any

import pytest

from aioqless import (
    Client,
    Job,
    JobRecord,
    JobState,
    LockLost,
    NewJob,
    NoSuchJob,
    WrongState,
)
from aioqless.errors import HasDependents, InvalidArgument


async def put(client: Client, jid: str = "a", data: Any = None, **options: Any) -> JobRecord:
    await client.queue("mail").put("Greet", data, jid=jid, **options)
    return await read(client, jid)


async def read(client: Client, jid: str = "a") -> JobRecord:
    found = await client.jobs.get(jid)
    assert found
    return found


async def running(client: Client, jid: str = "a", data: Any = None, **options: Any) -> Job[Any]:
    await client.queue("mail").put("Greet", data, jid=jid, **options)
    (popped,) = await client.queue("mail").pop()
    assert popped.jid == jid
    return popped


# Reading


async def test_get_returns_none_for_a_missing_job(client: Client) -> None:
    assert await client.jobs.get("nobody") is None
    with pytest.raises(NoSuchJob, match=r"there is no such job \(jid 'a'\)"):
        job = await put(client)
        await client.jobs.cancel("a")
        await job.refresh()


async def test_multiget_keeps_the_order_and_omits_missing_jobs(
    client: Client,
) -> None:
    for jid in "abc":
        await put(client, jid)
    assert [job.jid for job in await client.jobs.multiget("c", "nobody", "a")] == ["c", "a"]
    assert await client.jobs.multiget() == []


async def test_history_is_readable_as_events_and_as_stages(client: Client) -> None:
    job = await running(client)
    await job.complete("billing")
    (job,) = await client.queue("billing").pop(worker="w2")
    await job.fail("no such word", group="typo")
    record = await read(client)
    assert [event["what"] for event in record.events] == [
        "put",
        "popped",
        "done",
        "put",
        "popped",
        "failed",
    ]
    assert all(abs(event["when"] - time.time()) < 60 for event in record.events)
    assert [(stage["q"], stage.get("worker"), "done" in stage,
        "failed" in stage) for stage in record.history] == [
        ("mail", client.name, True, False), ("billing", "w2", False, True),
    ]  # fmt: skip
    assert record.details.events_total == 6
    failure = record.failure
    assert failure and (failure.group, failure.message, failure.worker) == (
        "typo",
        "no such word",
        "w2",
    )
    assert abs(failure.when - time.time()) < 60


async def test_completed_jobs_are_listed_latest_first(client: Client) -> None:
    for jid in "abc":
        await (await running(client, jid)).complete()
    assert await client.jobs.complete_jids() == ["c", "b", "a"]
    assert await client.jobs.complete_jids(offset=1, count=1) == ["b"]


async def test_failed_jobs_are_listed_by_group(client: Client) -> None:
    for jid in "abc":
        await (await running(client, jid)).fail(
            f"about {jid}", group="typo" if jid != "c" else "other"
        )
    assert await client.jobs.failed_counts() == {"typo": 2, "other": 1}
    total, jobs = await client.jobs.failed_in("typo")
    assert (total, [(job.jid, job.failure and job.failure.message) for job in jobs]) == (
        2,
        [("b", "about b"), ("a", "about a")],
    )
    total, jobs = await client.jobs.failed_in("typo", offset=1, count=1)
    assert (total, [job.jid for job in jobs]) == (2, ["a"])
    assert await client.jobs.failed_in("nothing") == (0, [])


# The holder's methods


@pytest.mark.parametrize("end", ["retry", "release"])
async def test_retry_and_release_store_changed_data(client: Client, end: str) -> None:
    job = await running(client, data={"n": 1})
    job.data["n"] = 2
    await getattr(job, end)()
    record = await read(client)
    assert (record.state, record.data) == ("waiting", {"n": 2})


@pytest.mark.parametrize(
    ("options", "state"),
    [({}, "waiting"), ({"delay": 600}, "scheduled"), ({"depends": ["b"]}, "depends")],
)
async def test_complete_can_move_the_job_to_a_next_queue(
    client: Client, options: dict[str, Any], state: str
) -> None:
    job = await running(client)
    await put(client, "b")
    assert await job.complete("billing", **options) == state
    record = await read(client)
    assert (record.state, record.queue) == (state, "billing")


async def test_heartbeat_renews_the_lock_and_stores_changed_data(client: Client) -> None:
    job = await running(client, data={"page": 1})
    before = job.expires
    assert await job.heartbeat() == job.expires >= before
    job.data["page"] = 2
    await job.heartbeat()
    assert (await read(client)).data == {"page": 2} and job.raw_data == '{"page":2}'
    other = await read(client)
    await client.redis.hset(f"{client.namespace}:j:a", "data", '{"page":3}')
    await job.heartbeat()  # which stores nothing, since nothing has changed
    assert (await other.refresh()).data == {"page": 3}


async def test_fail_stores_the_failure_in_its_group(client: Client) -> None:
    job = await running(client, data=1)
    job.data = 2
    await job.fail("no such word", group="typo")
    record = await read(client)
    assert (record.state, record.data, record.remaining) == ("failed", 2, 5)


async def test_retry_uses_a_retry_and_returns_how_many_remain(client: Client) -> None:
    job = await running(client, retries=1)
    assert await job.retry(group="busy", message="come back") == 0
    (job,) = await client.queue("mail").pop()
    assert job.failure and job.failure.group == "busy"
    assert await job.retry() == -1
    assert (await read(client)).state == "failed"


@pytest.mark.parametrize("verb", ["heartbeat", "complete", "retry", "release"])
async def test_lock_lost_names_the_holder_to_the_one_before(client: Client, verb: str) -> None:
    """Also if both are runs of a worker of the same name, which have different fences."""
    first = await running(client)
    await client.jobs.unlock("a")
    (second,) = await client.queue("mail").pop(worker=first.worker)
    assert second.worker == first.worker and second.fence > first.fence
    with pytest.raises(LockLost) as lost:
        await getattr(first, verb)()
    assert lost.value.holder == first.worker
    assert await second.complete() == "complete"


# Records


async def test_canceled_job_is_deleted(client: Client) -> None:
    job = await put(client, tags=["x"])
    assert await job.cancel() is True
    assert await client.jobs.get("a") is None and await client.jobs.tagged_jids("x") == (0, [])
    assert await job.cancel() is False


async def test_job_is_canceled_only_together_with_its_dependents(
    client: Client,
) -> None:
    first = await put(client)
    await put(client, "b", depends=["a"])
    with pytest.raises(
        HasDependents, match="a job depends on it and is not among the jobs to cancel"
    ) as held:
        await first.cancel()
    assert held.value.detail["dependent"] == "b"
    assert (await first.refresh()).dependents == ["b"]
    assert sorted(await client.jobs.cancel("a", "b", "nobody")) == ["a", "b"]


async def test_move_stores_new_data_and_a_new_priority(client: Client) -> None:
    job = await put(client, data={"n": 1})
    await put(client, "first")
    await job.move("billing", data={"n": 2}, priority=-1, depends=["first"])
    moved = await client.jobs.get("a")
    assert moved and (moved.data, moved.priority, moved.state) == ({"n": 2}, -1, "depends")


async def test_dependencies_can_be_changed_while_the_job_waits_for_them(client: Client) -> None:
    for jid in "bcd":
        await put(client, jid)
    job = await put(client, "a", depends=["b"])
    with pytest.raises(NoSuchJob, match=r"unknown.*'nobody'"):
        await job.depend("c", "nobody")
    await job.depend("c", "d", "nobody", missing="done")
    assert sorted((await job.refresh()).dependencies) == ["b", "c", "d"]
    await job.undepend("b")
    assert (
        sorted((await job.refresh()).dependencies) == ["c", "d"]
        and job.details.dependencies_total == 2
    )
    await job.undepend()
    assert (await job.refresh()).state == "waiting"
    with pytest.raises(WrongState, match="the job is not held by dependencies"):
        await job.depend("c")


async def test_priority_can_be_changed_while_the_job_waits(client: Client) -> None:
    for jid in "ab":
        await put(client, jid)
    job = await put(client, "c")
    await job.set_priority(-5)
    assert job.priority == -5 and await client.queue("mail").jids("waiting") == ["c", "a", "b"]
    with pytest.raises(InvalidArgument):
        await job.set_priority(float("nan"))
    assert job.priority == -5


async def test_job_is_found_by_its_tags(client: Client) -> None:
    job = await put(client, tags=["x"])
    assert await job.tag("y", "x", "z") == job.tags == ["x", "y", "z"]
    assert await job.untag("x", "nothing") == job.tags == ["y", "z"]
    other = await put(client, "b")
    await other.tag("z")
    assert await client.jobs.tagged_jids("z") == (2, ["a", "b"])
    assert await client.jobs.tagged_jids("z", offset=1, count=1) == (2, ["b"])
    assert await client.jobs.tags() == ["z"]
    assert await client.jobs.tags(offset=1) == []
    with pytest.raises(InvalidArgument, match="control character"):
        await job.tag("a\nb")


async def test_tracked_job_is_listed_even_after_its_deletion(client: Client) -> None:
    job = await put(client)
    await job.track("seen")
    assert (await job.refresh()).tracked and job.tags == ["seen"]
    await (await put(client, "b")).track()
    await job.cancel()
    jobs, expired = await client.jobs.tracked()
    assert ([each.jid for each in jobs], expired) == (["b"], ["a"])
    await job.untrack()
    assert (await client.jobs.tracked())[1] == []


async def test_custom_events_are_in_the_history(client: Client) -> None:
    job = await put(client)
    await job.log("halfway", page=12, list=[])
    await job.log("done with it")
    await job.refresh()
    assert [{**event, "when": 0} for event in job.events[1:]] == [
        {"what": "halfway", "when": 0, "page": 12, "list": job.events[1]["list"]},
        {"what": "done with it", "when": 0},
    ]  # fmt: skip
    await job.cancel()
    with pytest.raises(NoSuchJob):
        await job.log("too late")


async def test_invalid_jids_of_other_clients_can_be_looked_up(
    client: Client,
) -> None:
    for jid in ("\udcff", "ä" * 150, "a\nb", "a" * 600):
        assert await client.jobs.get(jid) is None
        with pytest.raises(NoSuchJob):
            await client.jobs.unlock(jid)


async def test_cancel_many_keeps_only_jobs_with_other_dependents(client: Client) -> None:
    mail = client.queue("mail")
    first = [await mail.put("Greet") for _ in range(205)]
    last = await mail.put("Greet", depends=[first[0]])
    await mail.put("Greet", jid="other", depends=[first[1]])
    steps: list[int] = []
    result = await client.jobs.cancel_many([*first, last], step=steps.append)
    assert (result.canceled, result.kept) == (205, (first[1],))
    assert sum(steps) == 206
    assert await client.jobs.get(first[0]) is None and await client.jobs.get("other")


async def test_retry_group_retries_each_job_in_its_own_queue(client: Client) -> None:
    for queue in ("mail", "post"):
        await client.queue(queue).put_many(NewJob("Greet") for _ in range(150))
        for job in await client.queue(queue).pop(150):
            await job.fail("x", group="typo")
    steps: list[int] = []
    assert await client.jobs.retry_group("typo", step=steps.append) == 300
    assert steps == [200, 100]
    assert (await client.queue("mail").counts()).waiting == 150
    assert await client.jobs.retry_group("typo") == 0


async def test_complete_job_has_its_last_queue(client: Client) -> None:
    await client.queue("mail").put("Greet", jid="a")
    (job,) = await client.queue("mail").pop()
    record = await read(client)
    assert (record.state, record.last_queue, record.is_stalled) == (
        *(JobState.RUNNING, "mail", False),
    )
    await job.complete()
    await record.refresh()
    assert (record.state, record.queue, record.last_queue) == (JobState.COMPLETE, "", "mail")


def test_unknown_state_of_another_client_is_kept() -> None:
    assert JobState("resting") == "resting"
    assert f"{JobState('resting')}" == "resting"


async def test_job_that_is_failed_without_a_group_gets_one_of_its_queue(client: Client) -> None:
    await (await running(client)).fail("no such word")
    assert await client.jobs.failed_counts() == {"mail-Fail": 1}


async def test_operator_fails_only_a_job_that_has_not_ended_and_does_not_run(
    client: Client,
) -> None:
    record = await put(client, data=1)
    await record.fail("set aside")
    await record.refresh()
    assert (record.state, record.data) == ("failed", 1)
    assert record.failure and (record.failure.group, record.failure.worker) == ("mail-Fail", "")
    with pytest.raises(WrongState, match="the job has ended already"):
        await record.fail("set aside")
    await running(client, "b")
    with pytest.raises(LockLost, match="only its holder can fail a running job"):
        await (await read(client, "b")).fail("set aside", group="typo")
