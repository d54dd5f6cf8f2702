"""Branches: jobs that run because another one failed, and jobs that run whatever happened."""

from __future__ import annotations

import time
from typing import Any

import pytest

import aioqless
from aioqless import (
    Client,
    Fail,
    Failure,
    Inject,
    Job,
    NewJob,
    NoSuchJob,
    chain,
    group,
    in_queue,
    job,
)
from aioqless.contrib.encryption import Encryption
from aioqless.errors import InvalidData
from aioqless.testing import RunFailed, perform
from tests.conftest import Until, existing_job
from tests.worker.conftest import Work


@job(klass="Good", queue="mail")
async def good(job: Job, order: int = 0) -> None: ...


@job(klass="Bad", queue="mail")
async def bad(job: Job, order: int = 0) -> None:
    raise Fail("none is left", group="sold-out")


class Seen(list[Failure]):
    """The failures that a branch's handler got."""


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture
def undo(seen: Seen) -> Any:
    @job(klass="Undo", queue="mail")
    async def undo(job: Job, order: int = 0, failure: Failure = Inject) -> None:
        seen.append(failure)

    return undo


async def ended(client: Client, jid: str, until: Until) -> str:
    async def is_there() -> bool:
        return await client.jobs.get(jid) is not None

    await until(is_there)
    return (await client.jobs.wait(jid, timeout=60)).state


async def test_workflow_takes_its_branch_and_ends(
    client: Client, work: Work, seen: Seen, undo: Any, until: Until
) -> None:
    found: list[dict[str, Failure]] = []

    @job(klass="Summary", queue="mail")
    async def summary(job: Job) -> None:
        found.append(await job.failures())

    flow = chain(
        good.data(),
        bad.data(order=7).on_failure(undo.data(order=7)),
        group(good.data(), good.data()),
        in_queue("mail", summary.data(), if_dependency_fails="run"),
    )
    async with work(good, bad, undo, summary):
        put = await client.put_flow(flow, once="order-7")
        assert (await client.jobs.wait(put.last[0], timeout=60)).state == "complete"
        assert await ended(client, "order-7-2-failure-1", until) == "complete"
    failure = Failure("order-7-2", "Bad", "sold-out", "none is left", {"order": 7})
    assert (seen, found) == ([failure], [{"order-7-2": failure}])
    states = await client.internals.store.states(jids=put.jids)
    assert states == ["complete", "failed", "depends", "depends", "complete"]
    assert (await existing_job(client, "order-7-2-failure-1")).cause == failure


async def test_handler_declares_a_branch_for_jobs_that_anybody_puts(
    client: Client, work: Work, seen: Seen, undo: Any, until: Until
) -> None:
    @job(klass="Risky", on_failure=undo)
    async def risky(job: Job) -> None:
        raise ValueError("no")

    async with work(risky, undo):
        await client.put("Risky", {"n": 1}, queue="mail", jid="a")
        assert await ended(client, "a-handler-failure-1", until) == "complete"
    assert [(each.jid, each.klass, each.data) for each in seen] == [("a", "Risky", {"n": 1})]


async def test_worker_whose_handler_has_no_branch_removes_it(
    client: Client, work: Work, undo: Any, until: Until
) -> None:
    async def declared() -> bool:
        return await client.redis.hexists(f"{client.namespace}:x:on-failure", "Bad")

    async with work(job(klass="Bad", on_failure=undo)(bad.fn), undo):
        await until(declared)
    async with work(bad):

        async def removed() -> bool:
            return not await declared()

        await until(removed)


async def test_failure_is_injected_by_its_annotation_alone(client: Client) -> None:
    got: list[Failure | None] = []

    @job
    async def by_type(job: Job, failure: aioqless.Failure) -> None:
        got.append(failure)

    @job
    def optional(job: Job, failure: Failure | None = None) -> None:
        got.append(failure)

    failure = Failure("a", "K", "g", "m", {"n": [1]})
    await perform(NewJob(by_type), resources={Failure: failure})
    await perform(optional.data())
    await perform(optional.data(), resources={Failure: failure})
    assert got == [failure, None, failure]
    outcome = (await perform(NewJob(by_type))).outcome
    assert isinstance(outcome, RunFailed) and "no on_failure put this job" in outcome.message


async def test_encrypted_data_of_the_failed_job_is_readable(redis_url: str, namespace: str) -> None:
    codec = Encryption(Encryption.new_key())
    async with Client(redis_url, namespace=namespace, codec=codec) as client:
        queue = client.queue("mail")
        await queue.put(NewJob("Bad", {"card": "card 4711"}).on_failure(NewJob("Undo", {"n": 1})))
        (popped,) = await queue.pop()
        await popped.fail("none", group="sold-out")
        (branch,) = await client.queue("default").pop()
        assert branch.data == {"n": 1}
        assert branch.cause and branch.cause.data == {"card": "card 4711"}
        assert "card 4711" not in str(await client.redis.hvals(f"{namespace}:j:{branch.jid}"))


async def test_branch_must_start_in_the_time_that_its_handler_says(client: Client) -> None:
    @job(klass="Alert", expires_in=60)
    async def alert(job: Job) -> None: ...

    queue = client.queue("mail")
    await queue.put(bad.data().on_failure(alert.data()))
    (popped,) = await queue.pop()
    await popped.fail("none", group="sold-out")
    (branch,) = await client.queue("default").pop()
    assert branch.expiry is not None and 0 < branch.expiry - time.time() <= 61


async def test_branch_that_no_failure_could_put_is_refused(client: Client) -> None:
    with pytest.raises(ValueError, match="the option depends, jid"):
        good.data().on_failure(good.data().with_options(jid="a", depends=["b"]))
    with pytest.raises(ValueError, match="an on_failure of its own"):
        good.data().on_failure(bad.data().on_failure(good))
    with pytest.raises(TypeError, match="must be a job, such as"):
        good.data().on_failure("undo")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="on_failure must be a job"):
        job(on_failure="undo")(bad.fn)  # type: ignore[call-overload]

    @job
    async def needs(job: Job, order: int) -> None: ...

    with pytest.raises(InvalidData, match="missing required field"):
        await client.put(good.data().on_failure(needs))


async def test_workflow_is_put_once(client: Client) -> None:
    flow = chain(good.data(), group(good.data(), good.data()))
    first = await client.put_flow(flow, once="w")
    again = await client.put_flow(flow, once="w")
    assert first.jids == again.jids == ("w-1", "w-2", "w-3")
    assert (first.last, first.existing, again.existing) == (("w-2", "w-3"), None, "w-1")
    assert (await client.queue("mail").counts()).depends == 2


async def test_unknown_dependency_is_refused_unless_it_counts_as_done(client: Client) -> None:
    with pytest.raises(NoSuchJob, match=r"deleted after it had completed.*typo"):
        await client.put(good.data(), depends=["typo"])
    with pytest.raises(NoSuchJob):
        await client.put_flow(chain(good.data().with_options(depends=["typo"])))
    assert await client.queue("mail").length() == 0
    await client.put(good.data(), depends=["typo"], missing="done", jid="a")
    held = await (await client.put(good.data(), depends=["a"])).job()
    with pytest.raises(NoSuchJob):
        await held.depend("typo")
    await held.depend("typo", missing="done")
    assert (await held.refresh()).dependencies == ["a"]
