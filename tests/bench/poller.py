"""The gain of a second, overlapping poller: `python -m tests.bench.poller [jobs] [rounds]`.

A worker has one poller: it pops, starts the jobs, and pops again. With a second poller, Redis could
process one pop while the jobs of the other start. Both variants drain the same number of no-op jobs
by turns within one run, so that their ratio is meaningful on a busy machine, too.
"""

from __future__ import annotations

import asyncio
import logging
import statistics
import sys
import time
from unittest import mock

import uvloop

from aioqless import Client, Job, NewJob, Settings, Worker, job
from aioqless.testing import server
from aioqless.worker.poller import Poller, StartJobs

CONCURRENCIES = (20, 100)


@job(klass="noop")
async def noop(job: Job, id: int) -> None:
    pass


class OverlappingPoller(Poller):
    """Polls twice at once."""

    async def run(self, start: StartJobs) -> None:
        async with asyncio.TaskGroup() as both:
            both.create_task(super().run(start))
            both.create_task(super().run(start))


async def drain(url: str, jobs: int, concurrency: int, poller: type[Poller]) -> float:
    """Return the jobs per second."""
    async with Client(url) as client:
        await client.queue("default").put_many(NewJob(noop, {"id": id}) for id in range(jobs))
    settings = Settings(concurrency=concurrency, burst=True)
    async with Client(url) as client:
        with mock.patch("aioqless.worker.worker.Poller", poller):
            worker = Worker(client, noop, settings=settings)
        began = time.perf_counter()
        await worker.run()
        return jobs / (time.perf_counter() - began)


def main(jobs: int = 6_000, rounds: int = 20) -> None:
    logging.getLogger("aioqless").setLevel(logging.ERROR)
    pollers = (Poller, OverlappingPoller)
    with server() as url:
        for concurrency in CONCURRENCIES:
            rates: dict[type[Poller], list[float]] = {poller: [] for poller in pollers}
            for number in range(rounds):
                for poller in pollers if number % 2 else reversed(pollers):
                    rates[poller].append(uvloop.run(drain(url, jobs, concurrency, poller)))
            one, two = (rates[poller] for poller in pollers)
            ratio = statistics.median(b / a for a, b in zip(one, two, strict=True))
            print(
                f"concurrency {concurrency}: best {max(one):.0f} jobs/s with one poller, "
                f"{max(two):.0f} with two ({max(two) / max(one):.2f}); median of ratios {ratio:.2f}"
            )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
