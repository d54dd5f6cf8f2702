"""The calls of clients, repeated: put, delay, retry, fail, depend, recur, cancel, tag, read."""

from __future__ import annotations

import asyncio
import random
import time

from aioqless import AioqlessError, Client, Key, Limit, NewJob, chain, group

HOWS = ("plain", "retry", "next", "fail")
# Seconds between rounds of about thirty jobs. If a busy machine could not keep up, the number of
# jobs with a retention of seconds would grow when the machine is faster again.
EVERY = 0.2


async def load(client: Client, seconds: float, chance: random.Random) -> int:
    """Repeat the calls for a number of seconds; returns how many jobs were put."""
    queue = client.queue("soak")
    jobs = rounds = 0
    end = time.monotonic() + seconds
    while (began := time.monotonic()) < end:
        await queue.put_many(_job(chance) for _ in range(20))
        await queue.put(
            "soak.thread",
            {"how": "plain"},
            delay=chance.uniform(0, 1),
            tags=[f"tag-{chance.randrange(20)}"],
        )
        await queue.put(
            "soak.act",
            {"how": "plain"},
            unique=Key(f"key-{chance.randrange(50)}"),
            limits=[Limit("narrow", max_concurrency=3)],
        )
        flow = await queue.put_flow(
            chain(_job(chance, "plain"), group(_job(chance, "after"), _job(chance, "after")))
        )
        gone = await queue.put("soak.act", {"how": "plain"}, delay=600)
        await client.jobs.cancel(gone)
        jobs += 26
        rounds += 1
        if rounds % 20 == 0:
            await client.jobs.wait(flow.last[0], timeout=60)
            await _operate(client)
        await asyncio.sleep(max(0.0, began + EVERY - time.monotonic()))
    return jobs


async def _operate(client: Client) -> None:
    """Read what dashboards read, and do what operators do now and then."""
    queue = client.queue("soak")
    recurring = await queue.recur("soak.act", {"how": "plain"}, every=1, jid="soak-recurring")
    await recurring.run_now()
    await recurring.cancel()
    total, failed = await client.jobs.failed_in("soak", count=5)
    for each in failed:
        await each.cancel()
    if total > 100:
        await queue.unfail("soak", 50)
    for jid in await queue.jids("waiting", count=2):
        if job := await client.jobs.get(jid):
            try:
                await job.tag("seen")
                await job.track()
                await job.untrack()
                await job.set_priority(-1)
            except AioqlessError:
                pass  # the queue was resumed meanwhile
    await queue.counts()
    await queue.stats()


def _job(chance: random.Random, how: str | None = None) -> NewJob:
    return NewJob(
        "soak.act",
        {"how": how or chance.choice(HOWS)},
        tags=["soak"] if chance.random() < 0.2 else None,
    )
