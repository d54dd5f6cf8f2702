"""Workflows combined with retries, timeouts, crashes, lost locks, cancellation and retention."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from redis.asyncio import Redis

from aioqless import (
    Client,
    Job,
    JobFailed,
    Key,
    Next,
    NoSuchJob,
    Retry,
    chain,
    group,
    in_queue,
    job,
)
from aioqless.errors import HasDependents
from aioqless.testing import Clock, run_jobs
from tests.combinations import in_processes
from tests.combinations.conftest import existing_job, expire_locks, states
from tests.conftest import Until
from tests.worker.conftest import Lines, Work


@job(klass="Flaky", result_ttl=60)
async def flaky(job: Job[Any], name: str = "", delay: float = 0) -> str:
    if job.remaining == job.retries:
        raise Retry(delay=delay)
    return name


@job(klass="Sum", result_ttl=60)
async def total(job: Job[Any]) -> list[Any]:
    return sorted((await job.results()).values())


@job(klass="Slow", timeout=0.05)
async def slow(job: Job[Any]) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("if_dependency_fails", ["hold", "fail", "cancel"])
async def test_retried_dependency_does_not_fail_its_dependents(
    client: Client, clock: Clock, clock_client: Client, if_dependency_fails: Any
) -> None:
    steps = chain(group(flaky.data(name="a"), flaky.data(name="b", delay=60)), total.data())
    put = await clock_client.queue("default").put_flow(
        steps, if_dependency_fails=if_dependency_fails
    )
    await run_jobs(clock_client, flaky, total)
    assert await states(client, *put.jids) == ["complete", "scheduled", "depends"]
    clock.move(60)
    await run_jobs(clock_client, flaky, total)
    assert await client.jobs.result(put.last[0]) == ["a", "b"]


@pytest.mark.parametrize(
    ("handler", "kind"), [(slow, "timeout"), (in_processes.crash, "ProcessDied")]
)
async def test_dependents_of_a_timed_out_or_crashed_job_fail(
    client: Client, work: Work, handler: Any, kind: str
) -> None:
    put = await client.queue("mail").put_flow(
        chain(handler.data(), total.data()), if_dependency_fails="fail"
    )
    async with work(handler, total, processes=1):
        last = await client.jobs.wait(put.last[0], timeout=60)
        with pytest.raises(JobFailed, match=f"which failed: mail-{kind}"):
            await last.outcome()


async def test_dependents_of_a_job_that_lost_its_locks_are_canceled(
    client: Client, redis: Redis
) -> None:
    await client.config.set("max-lost", 1)
    await client.queue("mail").put_flow(
        chain(flaky.data(name="x"), total.data()), if_dependency_fails="cancel"
    )
    jids = await client.queue("mail").jids("waiting")
    for _ in range(3):
        await client.queue("mail").pop(worker="ann")
        await expire_locks(redis, client)
    assert await states(client, *jids) == ["failed"]
    await client.internals.store.tick(batch=[])
    assert (await client.queue("mail").counts()).depends == 0


async def test_failed_dependents_run_again_when_they_are_unfailed(client: Client) -> None:
    fails = True

    @job(klass="Shaky")
    async def shaky(job: Job[Any]) -> None:
        if fails:
            raise ValueError

    steps = chain(shaky.data(), in_queue("default", total.data()), total.data())
    put = await client.queue("default").put_flow(steps, if_dependency_fails="fail")
    await run_jobs(client, shaky, total)
    assert await states(client, *put.jids) == ["failed"] * 3
    fails = False
    for kind in ("ValueError", "dependency-failed"):
        await client.queue("default").unfail(f"default-{kind}")
        await run_jobs(client, shaky, total)
    assert await states(client, *put.jids) == ["complete"] * 3


async def test_job_put_again_has_its_new_failure_policy(client: Client) -> None:
    mail = client.queue("mail")
    for jid in ("former", "later"):
        await mail.put("Flaky", jid=jid)
    await mail.put("Sum", jid="a", depends=["former"], if_dependency_fails="cancel")
    await mail.put("Sum", jid="b", depends=["former", "later"], if_dependency_fails="cancel")
    await mail.put("Sum", jid="a", depends=["later"])
    await (await existing_job(client, "later")).fail("by hand", group="broken")
    assert await states(client, "a", "b") == ["depends", None]
    await client.jobs.cancel("former", "later", "a")


async def test_running_dependency_is_canceled_only_with_its_dependents(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    @job(klass="Stay")
    async def stay(job: Job[Any]) -> None:
        await asyncio.Event().wait()

    put = await client.queue("mail").put_flow(chain(stay.data(), total.data()))
    async with work(stay, total):
        await until(lambda: lines.of("job.started"))
        with pytest.raises(HasDependents):
            await client.jobs.cancel(put.jids[0])
        await client.jobs.cancel(*put.jids)
        await until(lambda: lines.of("job.lock_lost"))
    assert await states(client, *put.jids) == [None, None]


async def test_retried_and_advanced_job_keeps_the_result_of_its_last_stage(
    client: Client, work: Work
) -> None:
    @job(klass="Stages", result_ttl=60)
    async def stages(job: Job[Any]) -> Any:
        if job.remaining == job.retries:
            raise Retry(delay=0)
        return Next("default") if job.queue == "mail" else "last"

    put = await client.queue("mail").put_flow(chain(stages.data(), total.data()))
    async with work(stages, total, queues=("mail", "default")):
        assert await (await existing_job(client, put.last[0])).outcome(timeout=60) == ["last"]
    assert len((await existing_job(client, put.jids[0])).history) == 2


async def test_results_outlive_pruned_jobs(client: Client) -> None:
    @job(klass="Brief", result_ttl=60)
    async def brief(job: Job[Any]) -> str:
        return "brief"

    await client.config.set("Brief-jobs-history", 0)
    put = await client.queue("default").put_flow(chain(brief.data(), total.data()))
    await run_jobs(client, brief, total)
    assert await states(client, *put.jids) == [None, "complete"]
    assert await client.jobs.result(put.jids[0]) == "brief" and await client.jobs.result(
        put.last[0]
    ) == ["brief"]
    with pytest.raises(NoSuchJob):
        await client.jobs.wait(put.jids[0], timeout=1)


async def test_context_and_constraints_are_stored_with_each_job_of_a_batch_or_workflow(
    client: Client,
) -> None:
    queue = client.queue("default")
    step = flaky.data(name="a")
    first, second = await queue.put_many([step, total.data()])
    await queue.put_flow(
        chain(
            in_queue("mail", flaky.data(), jid="x", context={"trace": "1"}, unique=Key("k")),
            total.data(),
        )
    )
    x = await existing_job(client, "x")
    assert x.context == {"trace": "1"} and await queue.put("Sum", unique=Key("k")) == "x"
    again = await queue.put_flow(
        chain(
            in_queue("mail", flaky.data(), context={"trace": "2"}, unique=Key("k")),
            total.data(),
        )
    )
    assert again.existing == "x"
    assert (await queue.counts()).depends == 1
    await client.jobs.cancel(first, second)


async def test_wait_continues_when_the_job_is_moved(
    client: Client, work: Work, until: Until
) -> None:
    await client.queue("nobody").put(total, jid="a")
    async with work(total), asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(client.jobs.wait("a", timeout=60))
        await until(lambda: client.redis.pubsub_numsub(f"{client.namespace}:log"))
        await (await existing_job(client, "a")).move("mail")
    assert waiting.result().state == "complete"


async def test_progress_of_a_thread_without_its_lock_is_refused(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    gone = threading.Event()

    @job(klass="Pages")
    def pages(job: Job[Any]) -> None:
        job.progress(0.1)
        gone.wait(60)
        job.progress(0.9)

    async with work(pages):
        await client.queue("mail").put(pages, jid="a")
        await until(lambda: _progress(client, 0.1))
        await (await existing_job(client, "a")).move("other")
        gone.set()
        await until(lambda: lines.of("job.lock_lost"))
    progressed = (await existing_job(client, "a")).last_progress
    assert progressed and progressed.share == 0.1
    await client.jobs.cancel("a")


async def _progress(client: Client, share: float) -> bool:
    progressed = (await existing_job(client, "a")).last_progress
    return progressed is not None and progressed.share == share
