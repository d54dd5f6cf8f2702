"""Ten incidents in one Redis, to be found in the dashboard.

`python -m tests.bench.incidents` stages a day of a shop, with 30 queues, 60 klasses and 200,000
jobs, by a clock that is moved. Then it prints the questions, and serves the dashboard until it is
interrupted, while three workers run.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import aioqless
from aioqless import Client, NewJob, Settings, Worker, chain, group
from aioqless.testing import Clock, server
from tests.reported_runs import report_runs

DAY, STEP = 86_400, 600  # seconds
DEPLOYED, LEAKING = 3_600, 3 * 3_600  # seconds ago
QUEUES = (
    *("mail", "imports", "billing", "search", "images", "reports", "crm", "sms", "push", "stock"),
    *("prices", "orders", "returns", "labels", "fraud", "audit", "feeds", "export", "webhooks"),
    *("thumbs", "video", "backup", "sync", "ratings", "coupons", "taxes", "geo", "cache", "logs"),
    "misc",
)
BROKEN = ("orders", "returns", "labels")  # queues whose second klass fails since the deploy
BALLAST = 260_000_000  # bytes that the third worker has leaked by the end
WORKERS = ("shop-1", "shop-2", "shop-3")
TOKEN = "token-of-the-incidents-that-are-staged"
QUESTIONS = """
a  Failures have doubled since a deploy. Which error of which klasses, since when? Retry only those
   of the last hour.
b  Customer 4711 asks what became of their import. Find the job by its data.
c  Mail gets later and later. Why? Mend it.
d  One tenant floods `imports`. Which one, with how many jobs? Stop them.
e  The workflow of the weekly report doesn't end. What holds it? Let it continue.
f  One worker needs more and more memory. Which one, since when, and what does it run?
g  What ran between 03:00 and 03:10 (UTC) in `billing`, where, and for how long?
h  Cancel the 5,000 jobs tagged `campaign-17`.
i  `nightly` is to run at 04:30 instead of 03:00. Pause it, and run it once now.
j  How did the run time (p95) of `shop.images.0` change with the last deploy?
"""


@dataclass
class State:
    """What handlers depend on.

    Attributes:
        clock: The time of the shop.
        deployed: When the broken version was deployed.
        ballast: What a leaking worker keeps; None in the others.
    """

    clock: Clock
    deployed: float
    ballast: list[bytes] | None = None


def handlers(state: State) -> list[Any]:
    """Make two handlers for each queue."""

    def make(queue: str, number: int) -> Any:
        slower = queue == "images" and number == 0
        breaks = queue in BROKEN and number == 1

        @aioqless.job(klass=f"shop.{queue}.{number}", queue=queue)
        async def run(job: aioqless.Job[dict[str, Any]]) -> None:
            after = state.clock() >= state.deployed
            least = 0.04 if slower and after else 5.0 if "slow" in job.data else 0.0
            await asyncio.sleep(random.uniform(least, 2 * least or 0.004))
            if state.ballast is not None:
                state.ballast.append(random.randbytes(1 << 18))
            if random.random() < 0.003:
                raise ConnectionError("the service did not answer")
            if (breaks and after and random.random() < 0.3) or "broken" in job.data:
                raise KeyError("vat_id")

        return run

    return [make(queue, number) for queue in QUEUES for number in range(2)]


def arrivals(handlers: list[Any], count: int) -> Iterator[NewJob]:
    """Return what customers cause in a while."""
    for _ in range(count):
        data = {"customer": random.randrange(5_000, 9_000), "items": [{"sku": "mug"}]}
        tenant = f"tenant-{random.randrange(40)}"
        yield random.choice(handlers).data(data).with_options(tags=[tenant])


async def stage(url: str, jobs: int) -> None:
    """Stage the day, and what is wrong at its end."""
    end = time.time()
    clock = Clock(end - DAY)
    state = State(clock, end - DEPLOYED)
    shop = handlers(state)
    by_klass = {each.klass: each for each in shop}
    async with Client(url, clock=clock) as client:
        await client.config.set("jobs-history-count", 2 * jobs)
        await client.queue("misc").recur(
            "shop.misc.0", {}, cron="0 3 * * *", jid="nightly", timezone="UTC"
        )
        for number in range(DAY // STEP):
            await client.put_many(list(arrivals(shop, jobs // (DAY // STEP))))
            if number == 20:
                imported = by_klass["shop.imports.1"].data({"customer": 4711, "file": "mugs.csv"})
                await client.put(imported.with_options(tags=["tenant-7"]))
            if clock.now >= end - 1_800 > clock.now - STEP:
                await _put_report(client, by_klass)
            await _work(client, shop, "v41" if clock.now < state.deployed else "v42")
            for minute in range(STEP // 60):
                now = clock.now + minute * 60
                await _note_memory(client, now, end - now)
            clock.move(STEP)
        clock.now = end - 1_200
        for _ in range(4):
            await client.put_many(by_klass["shop.mail.0"].data({"to": "x"}) for _ in range(300))
            clock.move(300)
        await client.config.set("mail-rate-limit", "60/60")
        flood = by_klass["shop.imports.0"].data({"slow": 1}).with_options(tags=["tenant-31"])
        await client.put_many([flood] * 12_000)
        campaign = by_klass["shop.push.0"].data({}).with_options(tags=["campaign-17"], delay=7_200)
        await client.put_many([campaign] * 5_000)


async def _put_report(client: Client, by_klass: dict[str, Any]) -> None:
    page, join = by_klass["shop.reports.0"], by_klass["shop.reports.1"]
    pages = [page.data({"page": 1})] * 5 + [page.data({"page": 6, "broken": 1})]
    fetch = by_klass["shop.export.0"].data({})
    flow = chain(fetch, group(*pages), join.data({}), by_klass["shop.mail.1"].data({}))
    await client.put_flow(flow, once="report-week")


async def _work(client: Client, shop: list[Any], version: str) -> None:
    settings = Settings(concurrency=100, burst=True, version_label=version, park_after=0)
    await Worker(client, shop, settings=settings, name=random.choice(WORKERS[:2])).run()


async def _note_memory(client: Client, now: float, seconds: float) -> None:
    """Report what the worker that leaks would have reported by now, `seconds` before the end."""
    leaked = max(0.0, 1 - seconds / LEAKING) * BALLAST
    facts: dict[str, Any] = {
        "host": "shop",
        "pid": 77,
        "version": "v41" if seconds > DEPLOYED else "v42",
        "slots": 10,
        "started": now - seconds,
    }
    facts |= {"memory": int(90e6 + leaked), "busy": random.randrange(4, 10)}
    await report_runs(client, now, worker=WORKERS[2], **facts)


def serve_dashboard(url: str, port: int) -> None:
    """Run the workers and the dashboard until it is interrupted."""
    environment = {**os.environ, "AIOQLESS_WEB_TOKEN": TOKEN, "AIOQLESS_URL": url}
    commands = [("tests.bench.incidents", "--work", name) for name in WORKERS]
    processes = [
        subprocess.Popen([sys.executable, "-m", *command], env=environment)
        for command in [*commands, ("aioqless", "web", "--port", str(port))]
    ]
    print(f"http://127.0.0.1:{port}/?token={quote(TOKEN)}\n{QUESTIONS}", flush=True)
    try:
        processes[-1].wait()
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(60)


async def work(name: str) -> None:
    """Run a worker of the shop."""
    clock = Clock()
    state = State(clock, 0.0, [random.randbytes(BALLAST)] if name == WORKERS[2] else None)
    async with Client() as client:
        settings = Settings(concurrency=10, version_label="v42")
        await Worker(client, handlers(state), settings=settings, name=name).run()


def main(jobs: int, port: int) -> None:
    with server() as url:
        began = time.monotonic()
        asyncio.run(stage(url, jobs))
        print(f"staged in {time.monotonic() - began:.0f} s")
        serve_dashboard(url, port)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=200_000)
    parser.add_argument("--port", type=int, default=5690)
    parser.add_argument("--work", metavar="NAME", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        asyncio.run(work(options.work))
    else:
        main(options.jobs, options.port)
