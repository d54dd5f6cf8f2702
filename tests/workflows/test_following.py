"""Following a job: state and progress as they change."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from redis import exceptions

from aioqless import Client, Job, NoSuchJob, job
from tests.conftest import Until, existing_job
from tests.worker.conftest import Work


async def listeners(client: Client) -> int:
    ((_, number),) = await client.redis.pubsub_numsub(f"{client.namespace}:log")
    return int(number)


async def follow(client: Client, jid: str, seen: list[Any]) -> None:
    found = await existing_job(client, jid)
    async for each in found.follow():
        assert each is found
        seen.append((each.state, each.last_progress.share if each.last_progress else None))


async def test_follow_yields_each_state_and_progress_to_the_end(
    client: Client, work: Work, until: Until
) -> None:
    seen: list[Any] = []

    @job(klass="Read")
    async def read(job: Job[Any]) -> None:
        for share in (0.25, 0.5):
            job.progress(share)
            await until(lambda share=share: ("running", share) in seen)

    jid = await client.queue("mail").put(read)
    following = asyncio.create_task(follow(client, jid, seen))
    await until(lambda: seen)
    async with work(read):
        await asyncio.wait_for(following, 60)
    assert list(dict.fromkeys(seen)) == [
        ("waiting", None),
        ("running", 0.25),
        ("running", 0.5),
        ("complete", 0.5),
    ]
    assert seen[-1] != seen[-2]


async def test_follow_of_a_canceled_job_raises(client: Client, until: Until) -> None:
    seen: list[Any] = []
    jid = await client.queue("mail").put("Greet")
    following = asyncio.create_task(follow(client, jid, seen))
    await until(lambda: seen)
    await client.jobs.cancel(jid)
    with pytest.raises(NoSuchJob):
        await following


async def test_all_followers_share_one_subscription_which_ends_with_the_last(
    client: Client, until: Until
) -> None:
    jids = [await client.queue("mail").put("Greet") for _ in range(20)]
    seen: list[Any] = []
    tasks = [asyncio.create_task(follow(client, jid, seen)) for jid in jids]
    tasks.append(asyncio.create_task(client.jobs.wait(jids[0])))  # type: ignore[arg-type]
    await until(lambda: len(seen) == 20)
    assert await listeners(client) == 1
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)

    async def no_subscriber() -> bool:
        return await listeners(client) == 0

    await until(no_subscriber)


async def test_closing_ends_follow_although_redis_still_answers(
    client: Client, until: Until
) -> None:
    """The connection is closed after the watcher, so a reading may succeed meanwhile."""
    seen: list[Any] = []
    following = asyncio.create_task(follow(client, await client.queue("mail").put("Greet"), seen))
    await until(lambda: seen)
    await client.internals.backend.watcher.aclose()
    with pytest.raises(exceptions.ConnectionError, match="the client was closed"):
        await asyncio.wait_for(following, 60)
