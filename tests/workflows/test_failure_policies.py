"""Dependents of a failed job: held, failed or canceled, as each chose."""

from __future__ import annotations

from typing import Any

import pytest

from aioqless import (
    Client,
    Fail,
    Job,
    JobFailed,
    NewJob,
    chain,
    in_queue,
    job,
)
from tests.conftest import existing_job
from tests.worker.conftest import Work


@job(klass="Bad")
async def bad(job: Job[Any]) -> None:
    raise Fail("there is none", group="no-postcode")


@job(klass="Good")
async def good(job: Job[Any]) -> None: ...


def new(jid: str, **options: Any) -> NewJob:
    return NewJob("Good", {}, jid=jid, **options)


ROOT = NewJob("Bad", {}, jid="root")


async def test_dependents_can_fail_with_a_reason(client: Client, work: Work) -> None:
    await client.queue("mail").put_flow(
        chain(ROOT, in_queue("slow", new("a")), new("b")), if_dependency_fails="fail"
    )
    async with work(bad, good):
        last = await existing_job(client, "b")
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


async def test_put_and_put_many_accept_a_policy(client: Client) -> None:
    queue = client.queue("mail")
    await queue.put(ROOT)
    await queue.put("Good", jid="a", depends=["root"], if_dependency_fails="fail")
    await queue.put_many(
        [new("b", depends=["root"], if_dependency_fails="cancel"), new("c", depends=["root"])]
    )
    (root,) = await queue.pop()
    await root.fail("there is none", group="no-postcode")
    states = await client.internals.store.states(jids=["a", "b", "c"])
    assert states == ["failed", "", "depends"]
