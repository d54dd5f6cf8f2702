"""A process that puts single jobs, batches and workflows.

It records each job before the put and after the acknowledgement.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from redis import exceptions

from aioqless import (
    Client,
    Durability,
    Handler,
    Job,
    Limit,
    NewJob,
    QueueFull,
    bulk_job,
    chain,
    group,
    in_queue,
)
from aioqless.contrib.partitions import PartitionedClient
from aioqless.errors import NotDurable
from tests.chaos.ledger import Ledger

QUEUE = "first"
# Keys with the same part in braces share a partition.
NARROW = Limit("narrow", max_concurrency=5)
MANY_STARTS, PERIOD = 50, 1.0
OFTEN = Limit("{narrow}-often", rate=(MANY_STARTS, PERIOD))
API = Limit("api", rate=(1000, 1))
PAUSE = 0.5  # seconds
MIX = {
    "quick": 61,
    "slow": 3,
    "thread": 5,
    "later": 5,
    "next": 7,
    "retry": 5,
    "fail": 5,
    "limited": 5,
    "steps": 3,
    "items": 2,
    "speak": 2,
    "bulk": 10,
}
OWN_HANDLER = ("thread", "steps", "dies", "items", "speak")  # klass chaos.thread and so on
MANY = 20
VALUES = 40  # that jobs have as items, and emit
OF_SETS = ("quick", "quick", "quick", "retry", "next", "thread", "fail")


@bulk_job(klass="chaos.bulk", size=20, within=0.2)
async def bulk(jobs: list[Job[Any]]) -> None:
    """Declare how jobs gather; the handler is `jobs.take_many`."""


class Producer:
    """Puts about `rate` jobs per second until it is stopped."""

    def __init__(self, client: Client, rate: float, chance: random.Random) -> None:
        self._client = client
        self._queue = client.queue(QUEUE)
        self._rate = rate
        self._chance = chance
        self._ledger = Ledger(Path(os.environ["CHAOS_LEDGER"]), "producer")
        self._made = 0
        self.stopping = asyncio.Event()

    async def run(self) -> None:
        clock = asyncio.get_running_loop().time
        due = clock()
        while not self.stopping.is_set():
            count = await self._some()
            due = max(
                due + count / self._rate, clock() - 1
            )  # jobs missed during a stall are not put in a burst later
            await asyncio.sleep(max(0.0, due - clock()))

    async def _some(self) -> int:
        kind = self._chance.choices(("one", "many", "flow", "set"), (58, 24, 13, 5))[0]
        if kind == "set" and isinstance(self._client, PartitionedClient):
            kind = "one"  # there are no sets with partitions
        if kind == "one":
            jobs = [self._job()]
            await self._put(jobs, self._queue.put(jobs[0]))
        elif kind == "many":
            jobs = [self._job() for _ in range(MANY)]
            await self._put(jobs, self._queue.put_many(jobs))
        elif kind == "set":
            jobs = [self._job(self._chance.choice(OF_SETS)) for _ in range(5)]
            await self._put(jobs, self._put_set(jobs))
        else:
            tag = f"{{flow-{os.getpid()}-{self._made}}}-"  # jobs of a workflow share a partition
            if self._chance.random() < 0.3:
                jobs = [self._job(how, tag) for how in ("fail", "run")]
                flow = chain(jobs[0], jobs[1].with_options(if_dependency_fails="run"))
            else:
                jobs = [self._job(how, tag) for how in ("quick", "after", "after")]
                flow = chain(jobs[0], group(jobs[1], jobs[2]))
            await self._put(jobs, self._queue.put_flow(flow))
        return len(jobs)

    async def _put_set(self, jobs: list[NewJob]) -> None:
        """Put a set and close it, again and again if no answer comes."""
        name = f"set-{os.getpid()}-{self._made}"
        self._ledger.note("set", name, [job.options.get("jid") for job in jobs])
        on_end = in_queue(QUEUE, NewJob("chaos.act", {"how": "quick", "seconds": 0}))
        job_set = self._client.job_set(name, then=on_end, when_ended=on_end)
        await job_set.put_many(jobs, queue=QUEUE)
        while not self.stopping.is_set():
            try:
                await job_set.close()
                return
            except (exceptions.RedisError, NotDurable):
                await asyncio.sleep(0.1)

    def _job(self, how: str | None = None, tag: str = "") -> NewJob:
        how = how or self._chance.choices(list(MIX), list(MIX.values()))[0]
        self._made += 1
        if how == "limited":  # as jobs with one limit key do
            tag = "{narrow}-"
        elif how == "steps":  # as the jobs that it calls
            tag = f"{{steps-{os.getpid()}-{self._made}}}-"
        seconds = self._chance.uniform(0, 0.03)
        if how in ("slow", "items", "speak"):
            seconds = self._chance.uniform(0.3, 2.5)
        delay = self._chance.uniform(0.2, 2) if how == "later" else 0.0
        job = NewJob(
            klass_of(how),
            {"how": how, "seconds": seconds},
            jid=f"{tag}{os.getpid()}-{self._made}-{how}",
            delay=delay,
        )
        match how:
            case "limited":
                return job.with_options(limits=[OFTEN, NARROW])
            case "fail":
                undo = NewJob("chaos.act", {"how": "undo", "seconds": 0})
                return job.on_failure(in_queue(QUEUE, undo))
        return job

    async def _put(self, jobs: list[NewJob], putting: Awaitable[Any]) -> None:
        jids = [job.options.get("jid") for job in jobs]
        self._ledger.note("offer", jids)
        try:
            await putting
        except* QueueFull:
            self._ledger.note("refused", jids)
            await asyncio.sleep(0.1)
        except* (exceptions.RedisError, NotDurable):
            self._ledger.note("unknown", jids)
            await asyncio.sleep(0.1)
        else:
            self._ledger.note("put", jids)


def klass_of(how: str) -> str | Handler:
    """Return the klass of the jobs that run in this way, or what declares how they gather."""
    if how in ("bulk", "kill"):
        return bulk
    return f"chaos.{how}" if how in OWN_HANDLER else "chaos.act"


def make_client(url: str) -> Client:
    """Return a client; on a Cluster, of all partitions, and a replica has what it put."""
    if "AIOQLESS_PARTITIONS" in os.environ:
        return PartitionedClient(url, durability=Durability(replicas=1))
    return Client(url)


async def main(url: str, rate: float, seed: int) -> None:
    async with make_client(url) as client:
        producer = Producer(client, rate, random.Random(seed))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, producer.stopping.set)
        await producer.run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3])))
