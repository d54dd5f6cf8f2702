"""The processor time of Redis for each command, one at a time and in batches.

The time of the client and of waiting is not included. BullMQ's commands are measured one at a time.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from aioqless.client.job.decoding import JobFields, decode_row
from aioqless.redis.connection import Connection
from aioqless.store import Call, CompleteManyRow, PutManyRow, ScriptStore
from aioqless.worker.poller import UPKEEP_INTERVAL
from tests.bench.driver import run
from tests.bench.peers import Figures, Peer, Setup, installed
from tests.bench.server import Server, server
from tests.command_calls import make_call

BATCHES = (1, 10, 100)
WORKER = "bench"
DATA = '{"id":12345,"email":"someone@example.com"}'


ROUNDS = 5  # of which each figure is the median: a processor may slow down for a second


def run_micro(jobs: int, peers: Sequence[Peer] = ()) -> Figures:
    """Return {command: {batch: {redis_us, script_us}}}, in µs per job; medians of several rounds.

    `redis_us` is all processor time of Redis, `script_us` the time within scripts. Where BullMQ is
    among the peers, `bullmq` has the same of it, one job a call, by command.
    """
    bullmq, _ = installed([peer for peer in peers if peer.name == "bullmq"])
    with server() as started, tempfile.TemporaryDirectory(prefix="aioqless-bench-") as folder:
        rounds = [_run_round(started, jobs, bullmq, Path(folder)) for _ in range(ROUNDS)]
        return {"jobs": jobs, "redis": started.version(), **_medians(rounds)}


def _run_round(started: Server, jobs: int, bullmq: Sequence[Peer], folder: Path) -> Figures:
    figures: Figures = {"commands": {}}
    for batch in BATCHES:
        started.empty()
        for name, cost in run(Micro(started, batch, jobs).measure()).items():
            figures["commands"].setdefault(name, {})[str(batch)] = cost
            print(
                f"{name:10} by {batch:3}: {cost['redis_us']:6.1f} µs of Redis a job, "
                f"{cost['script_us']:6.1f} in scripts",
                flush=True,
            )
    for peer in bullmq:
        started.empty()
        figures[peer.name] = Setup(peer, started, folder).drive("micro", str(jobs))
    return figures


def _medians(rounds: Sequence[Any]) -> Any:
    """Return the median of each figure of several rounds, which are nested in the same way."""
    first = rounds[0]
    if isinstance(first, dict):
        return {name: _medians([each[name] for each in rounds]) for name in first}
    return statistics.median(rounds) if isinstance(first, int | float) else first


class Micro:
    """Measures one batch size.

    A batch is one call of the bulk command where there is one, otherwise one write of many calls.
    """

    def __init__(self, server: Server, batch: int, jobs: int) -> None:
        self._server = server
        self._batch = batch
        self._jobs = jobs // batch * batch
        self._held: list[JobFields] = []

    async def measure(self) -> dict[str, dict[str, float]]:
        connection = Connection(self._server.url)
        self._store = ScriptStore(connection)
        await self._load()
        steps = (self.put, self.pop, self.heartbeat, self.retry, self.pop, self.complete)
        figures = {
            step.__name__: await self._cost(step) for step in steps
        }  # pop also runs after retry and fail: the last measurement is kept
        await self.put()
        await self.pop()
        figures["fail"] = await self._cost(self.fail)
        await connection.aclose()
        return figures

    async def put(self) -> None:
        for start in range(0, self._jobs, self._batch):
            jobs: list[PutManyRow] = [
                {"jid": f"{number:032d}", "klass": "noop", "data": DATA}
                for number in range(start, start + self._batch)
            ]
            if self._batch == 1:
                await self._store.put(queue="default", **jobs[0])
            else:
                await self._store.put_many(queue="default", batch=jobs)

    async def pop(self) -> None:
        """Pop in the way the worker does: most pops of a busy one look for waiting jobs only."""
        self._held.clear()
        upkeep_due = 0.0
        while True:
            order = "waiting"
            if (now := time.monotonic()) >= upkeep_due:
                order, upkeep_due = "ordered", now + UPKEEP_INTERVAL
            rows, *_ = await self._store.pop_many(
                worker=WORKER,
                count=self._batch,
                order=order,
                batch=[{"queue": "default"}],
            )
            if not rows:
                return
            self._held += [decode_row(row, WORKER) for row in rows]

    async def complete(self) -> None:
        """Complete in the way the worker does."""
        for held in self._portions():
            batch: list[CompleteManyRow] = [
                {"jid": job.jid, "queue": "default", "fence": job.fence} for job in held
            ]
            await self._store.complete_many(worker=WORKER, batch=batch)

    async def heartbeat(self) -> None:
        for held in self._portions():
            if self._batch == 1:
                await self._store.heartbeat(worker=WORKER, jid=held[0].jid, fence=held[0].fence)
            else:
                await self._store.heartbeat_many(
                    worker=WORKER,
                    batch=[{"jid": job.jid, "fence": job.fence} for job in held],
                )

    async def retry(self) -> None:
        await self._each("retry", queue="default", delay=0)

    async def fail(self) -> None:
        await self._each("fail", group="default-ValueError", message="Traceback ...")

    async def _each(self, command: str, **arguments: Any) -> None:
        """Call a command once per job, each batch in one write, as the worker does."""
        for held in self._portions():
            await self._store.pipeline([self._call(command, job, **arguments) for job in held])

    def _call(self, command: str, job: JobFields, **arguments: Any) -> Call:
        held = {"worker": WORKER, "jid": job.jid, "fence": job.fence}
        return make_call(self._store, command, **held, **arguments)

    def _portions(self) -> Sequence[list[JobFields]]:
        return [
            self._held[start : start + self._batch]
            for start in range(0, len(self._held), self._batch)
        ]

    async def _cost(self, step: Callable[[], Awaitable[None]]) -> dict[str, float]:
        cpu, within = self._server.cpu(), self._server.script_seconds()
        await step()
        redis, store = self._server.cpu() - cpu, self._server.script_seconds() - within
        return {"redis_us": redis / self._jobs * 1e6, "script_us": store / self._jobs * 1e6}

    async def _load(self) -> None:
        """Run every command once, so that Redis has loaded its script."""
        everything, self._jobs = self._jobs, self._batch
        for step in (
            self.put,
            self.pop,
            self.heartbeat,
            self.retry,
            self.pop,
            self.complete,
            self.put,
            self.pop,
            self.fail,
        ):
            await step()
        self._jobs = everything
