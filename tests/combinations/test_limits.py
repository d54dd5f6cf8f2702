"""Limits combined with timeouts in processes, start deadlines and bursts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aioqless import Client, Job, Limit, NewJob, Retry, job
from aioqless.testing import Clock, run_jobs
from tests.combinations import in_processes
from tests.combinations.conftest import existing_job, states
from tests.conftest import Until
from tests.worker.conftest import Lines, Work

ONE: dict[str, Any] = {"limits": [Limit("k", max_concurrency=1)]}


async def test_timeout_in_a_process_lets_the_next_job_of_the_key_start(
    client: Client, work: Work, until: Until, lines: Lines, tmp_path: Path
) -> None:
    for jid in "ab":
        await client.queue("mail").put(
            in_processes.hasty, {"folder": str(tmp_path)}, jid=jid, **ONE
        )
    async with work(in_processes.hasty, kill_after=0.1, processes=1):
        await until(lambda: len(lines.of("job.failed", group="mail-timeout")) == 2)
    first, second = (line["jid"] for line in lines.of("job.failed"))
    assert (first, second) == ("a", "b")


async def test_job_delayed_past_its_start_deadline_fails_and_frees_its_key(
    clock_client: Client, clock: Clock
) -> None:
    @job(klass="Visit")
    async def visit(job: Job[Any]) -> None: ...

    queue = clock_client.queue("default")
    await queue.put(visit, jid="holder", **ONE)
    await queue.put(visit, jid="late", expires_in=60, **ONE)
    await queue.put(visit, jid="next", **ONE)
    (holder,) = await queue.pop(worker="other")
    assert await queue.pop(10, worker="another") == []
    clock.move(61)
    await holder.complete()
    await run_jobs(clock_client, visit)
    assert await states(clock_client, "late", "next") == ["failed", "complete"]
    assert (await existing_job(clock_client, "late")).failure.group == "default-expired"


async def test_start_deadline_applies_to_every_run_until_the_job_is_unfailed(
    clock_client: Client, clock: Clock
) -> None:
    runs: list[str] = []

    @job(klass="Flaky")
    async def flaky(job: Job[Any]) -> None:
        runs.append(job.jid)
        if len(runs) == 1:
            raise Retry(delay=120)

    queue = clock_client.queue("default")
    await queue.put(flaky, jid="a", expires_in=60)
    await run_jobs(clock_client, flaky)
    clock.move(120)
    await run_jobs(clock_client, flaky)
    assert (runs, await states(clock_client, "a")) == (["a"], ["failed"])
    assert await queue.unfail("default-expired") == 1
    await run_jobs(clock_client, flaky)
    assert (runs, await states(clock_client, "a")) == (["a", "a"], ["complete"])


async def test_released_job_runs_elsewhere_only_before_its_start_deadline(
    clock_client: Client, clock: Clock
) -> None:
    @job(klass="Visit")
    async def visit(job: Job[Any]) -> None: ...

    for jid in ("soon", "late"):
        await clock_client.queue("default").put(visit, jid=jid, expires_in=60)
    soon, late = await clock_client.queue("default").pop(2, worker="other")
    await soon.release()
    await run_jobs(clock_client, visit)
    clock.move(50)
    await late.heartbeat()
    clock.move(50)
    await late.release()
    await run_jobs(clock_client, visit)
    assert await states(clock_client, "soon", "late") == ["complete", "failed"]


async def test_burst_ends_despite_declined_and_delayed_jobs(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    @job(klass="Visit", limits=[Limit("api", rate=(1, 3600))])
    async def visit(job: Job[Any]) -> None: ...

    await client.queue("mail").put_many(NewJob(visit) for _ in range(3))
    await client.queue("mail").put("Unknown", jid="unknown")
    async with work(visit, burst=True) as worker:
        await until(lambda: not worker.healthy)
    assert (len(lines.of("job.completed")), len(lines.of("job.declined"))) == (1, 1)
    assert (await client.queue("mail").counts()).scheduled == 3
