"""All that clients do, again and again: put, delay, retry, fail, depend, recur, cancel, tag, look,
read results."""

from __future__ import annotations

import asyncio
import random
import time

from aioqless import AioqlessError, Client, NewJob, chain, group

HOWS = ("plain", "retry", "next", "fail")
# Seconds from round to round, each of some thirty jobs. A busy machine keeps up: were it slower,
# what is kept for seconds would grow when the machine has time again.
EVERY = 0.2


async def load(client: Client, seconds: float, chance: random.Random) -> int:
    """Go on for so many seconds; returns how many jobs were put."""
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
            unique=f"key-{chance.randrange(50)}",
            concurrency_key="narrow",
            max_concurrent=3,
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
            await _look(client)
        await asyncio.sleep(max(0.0, began + EVERY - time.monotonic()))
    return jobs


async def _look(client: Client) -> None:
    """What is looked at, and what an operator does now and then."""
    queue = client.queue("soak")
    recurring = await queue.recur("soak.act", {"how": "plain"}, every=1, jid="soak-recurring")
    await recurring.run_now()
    await recurring.cancel()
    total, failed = await client.jobs.failed_in("soak", limit=5)
    for each in failed:
        await each.cancel()
    if total > 100:
        await queue.unfail("soak", 50)
    for jid in await queue.jobs("waiting", count=2):
        if job := await client.jobs.get(jid):
            try:
                await job.tag("seen")
                await job.track()
                await job.untrack()
                await job.set_priority(-1)
            except AioqlessError:
                pass  # it has gone on meanwhile
    await queue.counts()
    await queue.stats()


def _job(chance: random.Random, how: str | None = None) -> NewJob:
    return NewJob(
        "soak.act",
        {"how": how or chance.choice(HOWS)},
        tags=["soak"] if chance.random() < 0.2 else None,
    )
