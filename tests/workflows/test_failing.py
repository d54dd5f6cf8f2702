"""What becomes of those that depend on a job that failed: each has its choice."""

from __future__ import annotations

from typing import Any

import pytest

from aioqless import (
    Client,
    Fail,
    Job,
    JobFailed,
    NewJob,
    NoSuchJob,
    Retry,
    chain,
    group,
    in_queue,
    job,
)
from tests.conftest import Until
from tests.worker.conftest import Work


@job(klass="Bad")
async def bad(job: Job[Any]) -> None:
    raise Fail("no-postcode", "there is none")


@job(klass="Good")
async def good(job: Job[Any]) -> None: ...


def new(jid: str, **options: Any) -> NewJob:
    return NewJob("Good", {}, jid=jid, **options)


ROOT = NewJob("Bad", {}, jid="root")


async def states(client: Client, *jids: str) -> list[str | None]:
    return [state or None for state in await client.store.states(jids=jids)]


async def fail_root(client: Client) -> None:
    (root,) = await client.queue("mail").pop()
    await root.fail("no-postcode", "there is none")


async def test_by_default_they_are_held_until_the_failed_one_has_run_again(
    client: Client, work: Work
) -> None:
    await client.queue("mail").put_flow(chain(ROOT, new("a")))
    async with work(bad, good):
        await client.jobs.wait("root", timeout=10)
        assert await states(client, "a") == ["depends"]
    async with work(job(klass="Bad")(lambda job: None), good):
        await client.queue("mail").unfail("no-postcode")
        assert (await client.jobs.wait("a", timeout=10)).state == "complete"


async def test_they_can_fail_with_it_and_say_why(client: Client, work: Work) -> None:
    await client.queue("mail").put_flow(
        chain(ROOT, in_queue("slow", new("a")), new("b")), on_failed="fail"
    )
    async with work(bad, good):
        last = await client.jobs.get("b")
        assert last
        with pytest.raises(
            JobFailed, match="it depends on job a, which failed: slow-dependency-failed"
        ):
            await last.outcome(timeout=10)
    middle = await client.jobs.get("a")
    assert middle and middle.failure
    assert (middle.failure.group, middle.failure.message) == (
        "slow-dependency-failed",
        "it depends on job root, which failed: no-postcode",
    )
    assert await client.jobs.failed() == {
        "no-postcode": 1,
        "slow-dependency-failed": 1,
        "mail-dependency-failed": 1,
    }
    assert await client.check() == []


async def test_they_can_be_cancelled_with_it_and_so_is_all_behind_them(
    client: Client, work: Work
) -> None:
    flow = chain(ROOT, new("a", on_failed="cancel"), group(new("b"), new("c", on_failed="fail")))
    await client.queue("mail").put_flow(flow)
    async with work(bad, good):
        with pytest.raises(NoSuchJob):
            await client.jobs.wait("c", timeout=10)
    assert await states(client, "root", "a", "b", "c") == ["failed", None, None, None]
    assert await client.check() == []


async def test_each_has_a_choice_of_its_own(client: Client) -> None:
    steps = group(
        new("held"),
        new("failing", on_failed="fail"),
        new("cancelled", on_failed="cancel"),
        new("asks", on_failed="hold"),
    )
    await client.queue("mail").put_flow(chain(ROOT, steps))
    await fail_root(client)
    assert await states(client, "held", "failing", "cancelled", "asks") == [
        "depends",
        "failed",
        None,
        "depends",
    ]


async def test_a_job_put_alone_or_with_others_has_a_choice_too(client: Client) -> None:
    queue = client.queue("mail")
    await queue.put(ROOT)
    await queue.put("Good", jid="a", depends=["root"], on_failed="fail")
    await queue.put_many(
        [new("b", depends=["root"], on_failed="cancel"), new("c", depends=["root"])]
    )
    await fail_root(client)
    assert await states(client, "a", "b", "c") == ["failed", None, "depends"]


async def test_one_that_comes_after_the_failure_fails_as_well(client: Client) -> None:
    await client.queue("mail").put(ROOT)
    await fail_root(client)
    await client.queue("mail").put("Good", jid="a", depends=["root"], on_failed="fail")
    assert await states(client, "a") == ["failed"]


async def test_one_that_is_let_wait_for_a_failed_job_fails_as_well(client: Client) -> None:
    queue = client.queue("mail")
    await queue.put(ROOT)
    await fail_root(client)
    await queue.put(new("other"))
    await queue.put("Good", jid="a", depends=["other"], on_failed="fail")
    waiting = await client.jobs.get("a")
    assert waiting
    await waiting.depend("root")
    assert await states(client, "a") == ["failed"]


async def test_a_retry_is_no_failure_until_none_is_left(client: Client, work: Work) -> None:
    runs = []

    @job(klass="Bad", retries=1)
    async def again(job: Job[Any]) -> None:
        runs.append(await states(client, "a"))
        raise Retry()

    await client.queue("mail").put_flow(chain(again.data(), new("a", on_failed="fail")))
    async with work(again, good):
        assert (await client.jobs.wait("a", timeout=10)).state == "failed"
    assert runs == [["depends"], ["depends"]]


async def test_workers_see_to_those_behind_a_job_whose_locks_ran_out(
    client: Client, work: Work
) -> None:
    await client.config.set("grace-period", 0)
    queue = client.queue("mail")
    await queue.put("Bad", jid="root", retries=0)
    await queue.put("Good", jid="a", depends=["root"], on_failed="fail")
    await client.store.pop(queue="mail", worker="gone", count=1, now=1)
    async with work(good):
        assert (await client.jobs.wait("a", timeout=10)).state == "failed"
    assert await client.check() == []


async def test_very_many_are_seen_to_in_portions(client: Client, work: Work, until: Until) -> None:
    jids = [f"{number}" for number in range(900)]
    await client.queue("mail").put_flow(
        chain(ROOT, group(*(new(jid) for jid in jids))), on_failed="fail"
    )
    await fail_root(client)
    assert 0 < (await states(client, *jids)).count("failed") <= 200
    assert await client.check() == []
    async with work(good):

        async def all_failed() -> bool:
            return set(await states(client, *jids)) == {"failed"}

        await until(all_failed)
    assert await client.redis.exists(f"{client.namespace}:x:fallen") == 0
    assert await client.check() == []


async def test_those_not_seen_to_yet_stay_when_the_failed_job_runs_again(client: Client) -> None:
    jids = [f"{number}" for number in range(300)]
    await client.queue("mail").put_flow(
        chain(ROOT, group(*(new(jid) for jid in jids))), on_failed="fail"
    )
    await fail_root(client)
    await client.queue("mail").unfail("no-postcode")
    await client.store.tick(batch=[])
    assert (await states(client, *jids)).count("depends") == 100
