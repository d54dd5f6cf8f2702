"""Limits combined with priorities, timeouts, dead workers, deadlines, and the test clock."""

from __future__ import annotations

import asyncio
import itertools
import time
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from aioqless import Client, Job, Key, NewJob, Retry, job
from aioqless.testing import Clock, drain
from tests.combinations import in_processes
from tests.combinations.conftest import existing_job, expire_locks, states
from tests.conftest import Until
from tests.worker.conftest import Lines, Work

ONE: dict[str, Any] = {"limit_key": Key("k"), "max_concurrency": 1}


async def test_jobs_of_a_limited_key_run_by_priority_and_then_as_they_were_put(
    client: Client,
) -> None:
    ran: list[str] = []

    @job(klass="Visit")
    async def visit(job: Job[Any]) -> None:
        ran.append(job.jid)

    for jid, priority in (("c", 0), ("e", 5), ("a", -5), ("d", 0), ("b", -5)):
        await client.queue("default").put(visit, jid=jid, priority=priority, **ONE)
    await drain(client, visit, concurrency=10)
    assert ran == ["a", "b", "c", "d", "e"]


async def test_narrower_limit_of_queue_and_key_applies(
    client: Client, work: Work, until: Until
) -> None:
    going: list[str] = []
    most: dict[str, int] = {"all": 0, "k": 0}

    @job(klass="Visit")
    async def visit(job: Job[Any]) -> None:
        going.append(job.jid[0])
        most["all"], most["k"] = max(most["all"], len(going)), max(most["k"], going.count("k"))
        await asyncio.sleep(0.01)
        going.remove(job.jid[0])

    await client.config.set("mail-max-concurrency", 3)
    await client.queue("mail").put_many(
        NewJob(visit, jid=f"k{n}", limit_key=Key("k"), max_concurrency=2) for n in range(8)
    )
    await client.queue("mail").put_many(NewJob(visit, jid=f"free{n}") for n in range(8))
    async with (
        Client(client.url, namespace=client.namespace) as other,
        work(visit),
        work(visit, using=other),
    ):
        await until(lambda: _all_complete(client, 16))
    assert most == {"all": 3, "k": 2}


async def _all_complete(client: Client, number: int) -> bool:
    return len(await client.jobs.complete_jids(count=100)) == number


async def test_several_workers_keep_one_rate_limit(
    client: Client, work: Work, until: Until
) -> None:
    ran: list[str] = []

    @job(klass="Ask", limit_key=Key("api"), rate_limit=(2, 0.3))
    async def ask(job: Job[Any]) -> None:
        ran.append(job.jid)

    await client.queue("mail").put_many(NewJob(ask) for _ in range(6))
    async with (
        Client(client.url, namespace=client.namespace) as other,
        work(ask),
        work(ask, using=other),
    ):
        await until(lambda: len(ran) == 6)
    popped = sorted(
        [
            event["when"]
            for each in await client.jobs.multiget(*ran)
            for event in each.events
            if event["what"] == "popped"
        ]
    )
    assert all(later - earlier > 0.29 for earlier, later in zip(popped, popped[2:], strict=False))


async def test_rate_limit_follows_the_test_clock(clock_client: Client, clock: Clock) -> None:
    ran: list[str] = []

    @job(klass="Ask", limit_key=Key("api"), rate_limit=(2, 3600))
    async def ask(job: Job[Any]) -> None:
        ran.append(job.jid)

    await clock_client.queue("default").put_many(NewJob(ask, jid=f"{n}") for n in range(5))
    for so_far in (2, 4, 5):
        await drain(clock_client, ask)
        assert len(ran) == so_far
        clock.move(3601)
    assert ran == sorted(ran)


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
    await drain(clock_client, visit)
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
    await drain(clock_client, flaky)
    clock.move(120)
    await drain(clock_client, flaky)
    assert (runs, await states(clock_client, "a")) == (["a"], ["failed"])
    assert await queue.unfail("default-expired") == 1
    await drain(clock_client, flaky)
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
    await drain(clock_client, visit)
    clock.move(50)
    await late.heartbeat()
    clock.move(50)
    await late.release()
    await drain(clock_client, visit)
    assert await states(clock_client, "soon", "late") == ["complete", "failed"]


async def test_limited_job_that_kills_workers_fails_and_frees_its_key(
    client: Client,
) -> None:
    await client.config.set("max-lost", 1)
    await client.queue("mail").put("Visit", jid="deadly", **ONE)
    await client.queue("mail").put("Visit", jid="next", **ONE)
    for _ in range(2):
        (deadly,) = await client.queue("mail").pop(worker="ann")
        assert deadly.jid == "deadly"
        process = b'{"id":"%d","host":"h","place":"","pid":1,"started":""}'
        await client.internals.store.name_lease_claim(worker="ann", process=process % 1)
        await client.internals.store.name_lease_recover(worker="ann", id="1")
    assert await states(client, "deadly") == ["failed"]
    assert [job.jid for job in await client.queue("mail").pop(worker="bob")] == ["next"]
    await client.jobs.cancel("next")


async def test_limited_job_with_too_many_lost_locks_frees_its_key(
    client: Client, redis: Redis
) -> None:
    await client.queue("mail").put("Visit", jid="deadly", retries=0, **ONE)
    await client.queue("mail").put("Visit", jid="next", **ONE)
    assert len(await client.queue("mail").pop(10, worker="ann")) == 1
    await expire_locks(redis, client)
    found = await client.queue("mail").pop(10, worker="bob") or await client.queue("mail").pop(
        10, worker="bob"
    )
    assert [job.jid for job in found] == ["next"]
    assert await states(client, "deadly") == ["failed"]


async def test_burst_ends_despite_declined_and_delayed_jobs(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    @job(klass="Visit", limit_key=Key("api"), rate_limit=(1, 3600))
    async def visit(job: Job[Any]) -> None: ...

    await client.queue("mail").put_many(NewJob(visit) for _ in range(3))
    await client.queue("mail").put("Unknown", jid="unknown")
    async with work(visit, burst=True) as worker:
        await until(lambda: not worker.healthy)
    assert (len(lines.of("job.completed")), len(lines.of("job.declined"))) == (1, 1)
    assert (await client.queue("mail").counts()).scheduled == 3


async def test_runs_of_a_key_do_not_overlap_when_one_is_moved(
    client: Client, work: Work, until: Until
) -> None:
    spans: list[tuple[float, float]] = []

    @job(klass="Visit")
    async def visit(job: Job[Any]) -> None:
        began = time.monotonic()
        await asyncio.sleep(0.01)
        spans.append((began, time.monotonic()))

    for n in range(4):
        await client.queue("mail").put(visit, jid=f"{n}", **ONE)
    (first,) = await client.queue("mail").pop(10, worker="ann")
    await (await existing_job(client, "2")).move("other")
    await first.move("other")
    async with work(visit, queues=("mail", "other")):
        await until(lambda: len(spans) == 4)
    spans.sort()
    assert all(later[0] >= earlier[1] for earlier, later in itertools.pairwise(spans))
