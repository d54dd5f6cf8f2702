"""PartitionedWorker: runs the jobs of all partitions of a namespace."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import cast

from aioqless.client import Client
from aioqless.contrib.partitions.client import PartitionedClient
from aioqless.contrib.partitions.listener import PartitionListener
from aioqless.contrib.partitions.outages import NodeOutages, PartitionOutage
from aioqless.contrib.partitions.routing import partition_of, recurring_jid
from aioqless.contrib.partitions.store import PartitionedStore
from aioqless.contrib.partitions.turns import Turns, TurnSlots
from aioqless.handlers import Source
from aioqless.runtime.log import bound
from aioqless.store import ScriptStore
from aioqless.worker import Settings, Worker
from aioqless.worker.job_source import LOCKS_TIMEOUT, JobSource
from aioqless.worker.scheduler import Declarations
from aioqless.worker.shared import Shared


class PartitionedWorker(Worker):
    """Runs the jobs of all partitions, or of some, with one set of slots.

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
        TypeError, ValueError, AioqlessError: As for `Worker`; also for importers, which a
            partitioned worker can't have, and for a partition that doesn't exist.
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
        if settings and settings.importers:
            raise ValueError(
                "a partitioned worker takes no importers: import with a Worker of its own, on "
                "one of client.partitions"
            )
        self._partitioned = client
        self._numbers = sorted(range(client.count) if only is None else set(only))
        for number in self._numbers:
            if number not in range(client.count):
                raise ValueError(f"only names partition {number}, of {client.count}")
        if not self._numbers:
            raise ValueError("only must name a partition or more; None: all")

        def stop() -> None:
            for source in self._sources:
                source.poller.stop()
            if on_stopping is not None:
                on_stopping()

        super().__init__(client, *jobs, settings=settings, name=name, on_stopping=stop)

    def _make_sources(self) -> Sequence[JobSource]:
        client = self._partitioned
        locks = cast(PartitionedStore, client.dedicated_store("locks", LOCKS_TIMEOUT)).stores
        outages = NodeOutages(self.settings.reconnect)
        turns = Turns(self._running, self._lifecycle, outages)
        sources = [
            PartitionSource(
                client.partitions[number],
                number,
                self,
                self._shared,
                self._declarations_of(number),
                outage=outages.add(number, client.partitions[number].store.connection),
                locks=locks[number],
                slots=turns.add(),
            )
            for number in self._numbers
        ]
        turns.serve(sources)
        sources[0].parts += [turns, PartitionListener(sources)]
        return sources

    def _declarations_of(self, number: int) -> Declarations | None:
        """Return the recurring jobs that are in a partition."""
        if not self.settings.scheduler:
            return None
        count = self._partitioned.count

        def jid_of(klass: str) -> str:
            return recurring_jid(klass, count)

        handlers = [
            handler
            for handler in self.handlers
            if partition_of(jid_of(handler.klass), count) == number
        ]
        client = self._partitioned.partitions[number]
        return Declarations(client, handlers, self.settings.subscriptions, jid_of)


class PartitionSource(JobSource):
    """One partition of a worker. Its part of the worker starts when its node answers."""

    def __init__(
        self,
        client: Client,
        number: int,
        worker: Worker,
        shared: Shared,
        declarations: Declarations | None,
        *,
        outage: PartitionOutage,
        locks: ScriptStore,
        slots: TurnSlots,
    ) -> None:
        super().__init__(
            client, worker, shared, declarations, outage=outage, locks=locks, slots=slots
        )
        self.redis = client.redis
        self.namespace = client.namespace
        self._number = number
        self._slots = slots
        self._node_outage = outage
        self._claimed = False
        self.parts.remove(self.listener)  # there is one for the partitions of each node

    async def __aenter__(self) -> PartitionSource:
        return self

    async def __aexit__(self, *failed: object) -> None:
        if self._claimed and self.outage.reached:  # a lease on a node that is down expires
            await super().__aexit__(*failed)

    def log_recovered(self, jobs: int) -> None:
        """Have it logged with those of the other partitions."""
        self._slots.note_recovered(jobs)

    async def check(self) -> None:
        """Check nothing yet: other partitions needn't wait for this one's node."""

    async def run(self) -> None:
        """Claim the worker's name and check Redis, then pop and start jobs until stopped."""
        with bound(partition=self._number):
            await self._slots.reach()
            await super().__aenter__()
            self._claimed = True
            self._slots.note_claimed()
            await self._node_outage.node.check_once(super().check)
            await super().run()
