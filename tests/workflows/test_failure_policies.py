"""Dependents of a failed job: held, failed or canceled, as each chose."""

from __future__ import annotations

import json
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
    raise Fail("there is none", group="no-postcode")


@job(klass="Good")
async def good(job: Job[Any]) -> None: ...


def new(jid: str, **options: Any) -> NewJob:
    return NewJob("Good", {}, jid=jid, **options)


ROOT = NewJob("Bad", {}, jid="root")


async def states(client: Client, *jids: str) -> list[str | None]:
    return [state or None for state in await client.internals.store.states(jids=jids)]


async def fail_root(client: Client) -> None:
    (root,) = await client.queue("mail").pop()
    await root.fail("there is none", group="no-postcode")


async def test_dependents_are_held_by_default_until_the_failed_job_was_retried(
    client: Client, work: Work
) -> None:
    await client.queue("mail").put_flow(chain(ROOT, new("a")))
    async with work(bad, good):
        await client.jobs.wait("root", timeout=60)
        assert await states(client, "a") == ["depends"]
    async with work(job(klass="Bad")(lambda job: None), good):
        await client.queue("mail").unfail("no-postcode")
        assert (await client.jobs.wait("a", timeout=60)).state == "complete"


async def test_dependents_can_fail_with_a_reason(client: Client, work: Work) -> None:
    await client.queue("mail").put_flow(
        chain(ROOT, in_queue("slow", new("a")), new("b")), if_dependency_fails="fail"
    )
    async with work(bad, good):
        last = await client.jobs.get("b")
        assert last
        with pytest.raises(
            JobFailed, match="it depends on job a, which failed: slow-dependency-failed"
        ):
            await last.outcome(timeout=60)
    middle = await client.jobs.get("a")
    assert middle and middle.failure
    assert (middle.failure.group, middle.failure.message) == (
        "slow-dependency-failed",
        "it depends on job root, which failed: no-postcode",
    )
    assert await client.jobs.failed_counts() == {
        "no-postcode": 1,
        "slow-dependency-failed": 1,
        "mail-dependency-failed": 1,
    }
    assert await client.check() == []


async def test_dependents_can_be_canceled_transitively(client: Client, work: Work) -> None:
    flow = chain(
        ROOT,
        new("a", if_dependency_fails="cancel"),
        group(new("b"), new("c", if_dependency_fails="fail")),
    )
    await client.queue("mail").put_flow(flow)
    async with work(bad, good):
        with pytest.raises(NoSuchJob):
            await client.jobs.wait("c", timeout=60)
    assert await states(client, "root", "a", "b", "c") == ["failed", None, None, None]
    assert await client.check() == []


async def test_put_and_put_many_accept_a_policy(client: Client) -> None:
    queue = client.queue("mail")
    await queue.put(ROOT)
    await queue.put("Good", jid="a", depends=["root"], if_dependency_fails="fail")
    await queue.put_many(
        [new("b", depends=["root"], if_dependency_fails="cancel"), new("c", depends=["root"])]
    )
    await fail_root(client)
    assert await states(client, "a", "b", "c") == ["failed", None, "depends"]


async def test_dependent_put_after_the_failure_fails(client: Client) -> None:
    await client.queue("mail").put(ROOT)
    await fail_root(client)
    await client.queue("mail").put("Good", jid="a", depends=["root"], if_dependency_fails="fail")
    assert await states(client, "a") == ["failed"]


async def test_dependency_on_a_failed_job_added_later_fails_the_dependent(client: Client) -> None:
    queue = client.queue("mail")
    await queue.put(ROOT)
    await fail_root(client)
    await queue.put(new("other"))
    await queue.put("Good", jid="a", depends=["other"], if_dependency_fails="fail")
    waiting = await client.jobs.get("a")
    assert waiting
    await waiting.depend("root")
    assert await states(client, "a") == ["failed"]


async def test_retry_is_no_failure_until_no_retry_remains(client: Client, work: Work) -> None:
    runs = []

    @job(klass="Bad", retries=1)
    async def again(job: Job[Any]) -> None:
        runs.append(await states(client, "a"))
        raise Retry(delay=0)

    await client.queue("mail").put_flow(chain(again.data(), new("a", if_dependency_fails="fail")))
    async with work(again, good):
        assert (await client.jobs.wait("a", timeout=60)).state == "failed"
    assert runs == [["depends"], ["depends"]]


async def test_dependents_of_a_job_that_lost_its_locks_are_handled(
    client: Client, work: Work
) -> None:
    await client.config.set("grace-period", 0)
    queue = client.queue("mail")
    await queue.put("Bad", jid="root", retries=0)
    await queue.put("Good", jid="a", depends=["root"], if_dependency_fails="fail")
    await client.internals.store.pop(queue="mail", worker="gone", count=1, now=1)
    async with work(good):
        assert (await client.jobs.wait("a", timeout=60)).state == "failed"
    assert await client.check() == []


async def test_many_dependents_are_handled_in_batches(
    client: Client, work: Work, until: Until
) -> None:
    jids = [f"{number}" for number in range(900)]
    await client.queue("mail").put_flow(
        chain(ROOT, group(*(new(jid) for jid in jids))), if_dependency_fails="fail"
    )
    await fail_root(client)
    assert 0 < (await states(client, *jids)).count("failed") <= 200
    assert await client.check() == []
    async with work(good):

        async def all_failed() -> bool:
            return set(await states(client, *jids)) == {"failed"}

        await until(all_failed)
    notes = [each async for each, _ in client.redis.zscan_iter(f"{client.namespace}:x:agenda")]
    kinds = {json.loads(each)["kind"] for each in notes}
    assert kinds == {"review failures", "review statistics"}
    assert await client.check() == []


async def test_unhandled_dependents_are_held_again_if_the_job_is_retried(client: Client) -> None:
    jids = [f"{number}" for number in range(150)]
    await client.queue("mail").put_flow(
        chain(ROOT, group(*(new(jid) for jid in jids))), if_dependency_fails="fail"
    )
    await fail_root(client)
    await client.queue("mail").unfail("no-postcode")
    await client.internals.store.tick(batch=[])
    assert 0 < (await states(client, *jids)).count("depends") < 100
