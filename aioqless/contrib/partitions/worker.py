"""PartitionedWorker: runs the jobs of all partitions of a namespace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import cast

from aioqless.contrib.partitions.client import PartitionedClient
from aioqless.contrib.partitions.listener import PartitionListener
from aioqless.contrib.partitions.outages import NodeOutages
from aioqless.contrib.partitions.routing import partition_of, recurring_jid
from aioqless.contrib.partitions.store import PartitionedStore
from aioqless.contrib.partitions.turns import Turns
from aioqless.errors import NameTaken
from aioqless.handlers import Source
from aioqless.runtime.log import bound, log
from aioqless.runtime.tasks import cancel_and_wait
from aioqless.worker import Settings, Shared, Subscription, Worker
from aioqless.worker.scheduler import Declarations
from aioqless.worker.shared import CLOSE_INTERVAL, HostedWorker
from aioqless.worker.worker import LOCKS_TIMEOUT, Hosted


class PartitionedWorker(HostedWorker):
    """Runs the jobs of all partitions, or of some: a worker of each, which share their slots.

    Pops go to several nodes at once, at most one to each node, and partitions take turns. A node
    that is down delays the jobs of its own partitions only.

    Args:
        client: The client of the partitions.
        jobs: What runs, as for `Worker`.
        settings: How it behaves; `concurrency` is that of all partitions together.
        name: A stable name, as for `Worker`.
        on_stopping: Called once when it begins to stop.
        only: The numbers of the partitions to serve; None: all.

    Raises:
        TypeError, ValueError, AioqlessError: As for `Worker`; also for a partition that
            doesn't exist.
    """

    def __init__(
        self,
        client: PartitionedClient,
        *jobs: Source,
        settings: Settings | None = None,
        name: str | None = None,
        on_stopping: Callable[[], object] | None = None,
        only: Collection[int] | None = None,
    ) -> None:
        self._numbers = sorted(range(client.count) if only is None else set(only))
        for number in self._numbers:
            if number not in range(client.count):
                raise ValueError(f"only names partition {number}, of {client.count}")
        if not self._numbers:
            raise ValueError("only must name a partition or more; None: all")

        def stop() -> None:
            for worker in self._workers:
                worker.stop()
            if on_stopping is not None:
                on_stopping()

        shared = Shared(client, *jobs, settings=settings, name=name, on_stopping=stop)
        super().__init__(client, shared)
        outages = NodeOutages(self.settings.reconnect)
        self._turns = Turns(shared, outages, client.count)
        self._lost: list[NameTaken] = []  # who has the name by now, in some partitions
        locks = cast(PartitionedStore, client.dedicated_store("locks", LOCKS_TIMEOUT)).stores
        clients = [client.partitions[number] for number in self._numbers]
        self._workers = [
            Worker(
                each,
                hosted=Hosted(
                    host=self,
                    shared=shared,
                    outage=outages.add(number, each.store.connection),
                    locks=locks[number],
                    slots=self._turns.add(number),
                    declarations=self._declarations_of(number, client),
                ),
            )
            for number, each in zip(self._numbers, clients, strict=True)
        ]
        self._turns.serve(self._workers, clients)
        self._listener = PartitionListener(self._workers, clients)

    @property
    def ready(self) -> bool:
        """Whether it takes jobs: it reaches a node, and is neither paused nor stopping."""
        return any(worker.ready for worker in self._workers)

    @property
    def idle(self) -> bool:
        """Whether nothing more was ready at the last polls, and it waits for the next."""
        return all(worker.idle for worker in self._workers)

    @property
    def abandoned(self) -> list[str]:
        """The jids of jobs whose code had not stopped when the worker had to end."""
        return [jid for worker in self._workers for jid in worker.abandoned]

    @property
    def subscriptions(self) -> tuple[Subscription, ...]:
        """What it serves now, in order of preference."""
        return self._workers[0].subscriptions

    @property
    def paused(self) -> bool:
        """Whether it is paused."""
        return self._workers[0].paused

    async def release_abandoned(self) -> None:
        """Release the abandoned jobs; they use no retry."""
        await asyncio.gather(*(worker.release_abandoned() for worker in self._workers))

    def subscribe(self, queue: str, *, limit: int | None = None, weight: int = 1) -> None:
        """Serve a queue from now on: see `Worker.subscribe`."""
        for worker in self._workers:
            worker.subscribe(queue, limit=limit, weight=weight)
        subscription = str(Subscription(queue, limit, weight))
        log.info("worker.subscribed", worker=self.name, queue=subscription)

    def unsubscribe(self, queue: str) -> None:
        """Stop serving a queue: see `Worker.unsubscribe`."""
        for worker in self._workers:
            worker.unsubscribe(queue)
        log.info("worker.unsubscribed", worker=self.name, queue=queue)

    def pause(self) -> None:
        """Take no new jobs until `resume`; running jobs are not affected."""
        for worker in self._workers:
            worker.pause()

    def resume(self) -> None:
        """Take jobs again."""
        if self.paused:
            for worker in self._workers:
                worker.resume()
            log.info("worker.resumed", worker=self.name)

    def stop(self) -> None:
        """Begin a graceful shutdown: `run` returns when running jobs have ended or are released."""
        if self._shared.lifecycle.stop():
            self._log_shutdown()

    def stop_at_once(self) -> None:
        """Begin a shutdown that releases running jobs without waiting for them."""
        self.stop()
        for worker in self._workers:
            worker.stop_at_once()

    async def run(self) -> None:
        """Work until stopped.

        Raises:
            NameTaken: Another worker has the name, or took it during an outage.
            redis.exceptions.RedisError: Redis refuses connections for good.
        """
        async with self._reported():
            self._log_start()
            async with self._shared, asyncio.TaskGroup() as group:
                beside = [group.create_task(part.run()) for part in (self._turns, self._listener)]
                async with asyncio.TaskGroup() as working:
                    for index in range(len(self._workers)):
                        working.create_task(self._run_one(index))
                await cancel_and_wait(*beside, every=CLOSE_INTERVAL)
            if self._lost:
                raise self._lost[0]

    async def _run_one(self, index: int) -> None:
        """Run the worker of a partition as soon as its node answers."""
        with bound(partition=self._numbers[index]):
            await self._turns.reach(index)
            if self._shared.lifecycle.stopping:
                return
            try:
                await self._workers[index].run()
            except NameTaken as taken:
                if not self._shared.lifecycle.stopping:
                    raise
                self._lost.append(taken)  # the others release their jobs first

    def _declarations_of(self, number: int, client: PartitionedClient) -> Declarations | None:
        """Return the recurring jobs that are in a partition."""
        if not self.settings.scheduler:
            return None

        def jid_of(klass: str) -> str:
            return recurring_jid(klass, client.count)

        handlers = [
            handler
            for handler in self.handlers
            if partition_of(jid_of(handler.klass), client.count) == number
        ]
        return Declarations(
            client.partitions[number], handlers, self.settings.subscriptions, jid_of
        )
