"""What long jobs cost Redis: a step beside a heartbeat with data, and tokens that jobs emit.

The figures are Redis' own processor time, so that other load on the machine hardly counts.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable

from aioqless import Client, Job, Settings, Worker, job
from aioqless.contrib.durable.generated_commands import DurableCommands
from aioqless.contrib.output import Emitted
from aioqless.redis.connection import Connection
from aioqless.store import PutManyRow, ScriptStore
from tests.bench.driver import run
from tests.bench.peers import Figures
from tests.bench.server import Server, server

ROUNDS = 5  # of steps and heartbeats in turn
STEPS = 10  # of each job
WORKER = "bench"
DATA = '{"id":12345,"email":"someone@example.com"}'
JOBS, RATE = 100, 100  # jobs that emit, and tokens a second of each


def run_durable(jobs: int, seconds: float) -> Figures:
    """Return {step: µs, heartbeat: µs, ratio, output: {with readers: share of a core, ...}}."""
    with server() as started:
        figures = run(_measure_steps(started, jobs)) | {"redis": started.version()}
    output = {}
    for readers in (False, True):
        with server() as started:
            name = "with readers" if readers else "without readers"
            output[name] = run(_measure_output(started, seconds, readers=readers))
            print(f"output {name}: {output[name]}", flush=True)
    return {**figures, "jobs": jobs, "output": output}


async def _measure_steps(started: Server, jobs: int) -> Figures:
    """Store steps, and send heartbeats with data of the same size, for the same running jobs."""
    connection = Connection(started.url)
    store = ScriptStore(connection)
    commands = DurableCommands(store)
    batch: list[PutManyRow] = [
        {"jid": f"{n:032d}", "klass": "noop", "data": DATA} for n in range(jobs)
    ]
    await store.put_many(queue="default", batch=batch)
    await store.pop(queue="default", worker=WORKER, count=jobs)

    async def step(jid: str, number: int) -> None:
        await commands.step(jid=jid, worker=WORKER, kind="step", name=f"step-{number}", result=DATA)

    async def heartbeat(jid: str, number: int) -> None:
        await store.heartbeat(jid=jid, worker=WORKER, data=DATA)

    async def cost(call: Callable[[str, int], Awaitable[None]], first: int) -> float:
        before = started.cpu()
        for number in range(first, first + STEPS):
            for row in batch:
                await call(row["jid"], number)
        return (started.cpu() - before) / (jobs * STEPS) * 1e6

    rounds = []
    for number in range(ROUNDS + 1):  # the first isn't measured: it loads the scripts
        costs = {
            "heartbeat": await cost(heartbeat, STEPS * number),
            "step": await cost(step, STEPS * number),
        }
        rounds.append({**costs, "ratio": costs["step"] / costs["heartbeat"]})
    await connection.aclose()
    figures = {key: statistics.median(each[key] for each in rounds[1:]) for key in rounds[0]}
    print(f"a step beside a heartbeat with data: {figures}", flush=True)
    return figures


@job(klass="speak", output_ttl=60)
async def speak(job: Job, rate: int, seconds: float) -> None:
    begun, sent = time.monotonic(), 0
    while (passed := time.monotonic() - begun) < seconds:
        for _ in range(sent, int(passed * rate)):
            job.emit(" token")
            sent += 1
        await asyncio.sleep(0.01)


async def _measure_output(started: Server, seconds: float, *, readers: bool) -> Figures:
    """Run jobs that emit, and perhaps a reader of each; return what it cost Redis."""
    async with Client(started.url) as client, Client(started.url) as site:
        jids = [await client.put(speak.data(rate=RATE, seconds=seconds)) for _ in range(JOBS)]
        before, begun = started.cpu(), time.monotonic()
        reading = [asyncio.create_task(_read(site, jid)) for jid in jids] if readers else []
        settings = Settings(concurrency=JOBS, burst=True)
        await Worker(client, speak, settings=settings).run()
        used, passed = started.cpu() - before, time.monotonic() - begun
        values = sum([await each for each in reading] or [await _read(site, jid) for jid in jids])
    return {"values_per_second": values / passed, "core": used / passed}


async def _read(client: Client, jid: str) -> int:
    """Return the number of values of a job."""
    return sum([isinstance(each, Emitted) async for each in client.jobs.output(jid)])
