"""Load on servers that are killed: producers, workers, and a ledger of acknowledged and run jobs.

The ledger is kept outside of Redis.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from redis import exceptions

from aioqless import AioqlessError, Client, Durability, Job, Settings, Worker, job
from aioqless.worker import ReconnectDelays


@dataclass
class Ledger:
    """Records of each job. Times are those of time.monotonic."""

    put: dict[str, float] = field(default_factory=dict)  # puts that were acknowledged
    refused: dict[str, str] = field(
        default_factory=dict
    )  # puts whose caller got an error: the job exists or not
    ran: dict[str, list[float]] = field(default_factory=dict)
    killed: float = 0.0
    stopped: float = float("inf")  # no jobs are put any more, and those that are left may be lost

    def recovered(self, times: list[float]) -> float:
        """Return the seconds from the kill to the first record that was not already on its way.

        This is the end of the longest pause before the load was stopped.
        """
        end = min(self.stopped, time.monotonic())
        late = sorted([self.killed, *(each for each in times if self.killed < each < end), end])
        _, end = max((after - before, after) for before, after in itertools.pairwise(late))
        return end - self.killed

    @property
    def put_again(self) -> float:
        return self.recovered(list(self.put.values()))

    @property
    def ran_again(self) -> float:
        return self.recovered([each for times in self.ran.values() for each in times])


@dataclass
class Load:
    """A producer and a worker per namespace. `namespaces` are distributed over all nodes."""

    url: str
    namespaces: tuple[str, ...] = ("ql",)
    callers: int = 20
    size: int = 10  # bytes of each job's data
    durability: Durability | None = None
    works: bool = True

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[dict[str, Ledger]]:
        """Put and run jobs in each namespace until the block ends; then run the remaining jobs."""
        ledgers = {namespace: Ledger() for namespace in self.namespaces}
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as all_of_them:
            for namespace, ledger in ledgers.items():
                all_of_them.create_task(self._run(namespace, ledger, stop))
            try:
                yield ledgers
            finally:
                stop.set()
                for ledger in ledgers.values():
                    ledger.stopped = time.monotonic()

    async def _run(self, namespace: str, ledger: Ledger, stop: asyncio.Event) -> None:
        @job(klass="Note", retries=20)
        async def note(job: Job[Any]) -> None:
            ledger.ran.setdefault(job.jid, []).append(time.monotonic())

        settings = Settings(queues=("mail",), poll=0.1, reconnect=ReconnectDelays(longest=0.5))
        async with (
            Client(self.url, namespace=namespace, durability=self.durability) as client,
            contextlib.AsyncExitStack() as stack,
        ):
            if self.works:
                await stack.enter_async_context(Worker(client, note, settings=settings))
            await asyncio.gather(
                *(self._put(client, ledger, number, stop) for number in range(self.callers))
            )
            if self.works:
                # a job that never runs is counted as lost
                with contextlib.suppress(AssertionError):
                    await until(lambda: not ledger.put.keys() - ledger.ran.keys())

    async def _put(self, client: Client, ledger: Ledger, caller: int, stop: asyncio.Event) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            jid = f"{caller}-{number}"
            try:
                await client.queue("mail").put("Note", "x" * self.size, jid=jid, retries=20)
            except (exceptions.RedisError, AioqlessError) as error:
                ledger.refused[jid] = repr(error)
                await asyncio.sleep(0.02)
            else:
                ledger.put[jid] = time.monotonic()


async def lost(client: Client, ledger: Ledger) -> list[str]:
    """Return the jobs that were acknowledged, never ran, and no longer exist."""
    missing = [jid for jid in ledger.put if jid not in ledger.ran]
    found = {
        each.jid
        for start in range(0, len(missing), 500)
        for each in await client.jobs.multiget(*missing[start : start + 500])
    }
    return [jid for jid in missing if jid not in found]


async def until(condition: Callable[[], Any], patience: float = 60.0) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        await asyncio.sleep(0.01)  # the servers have none of our pub/sub events
