"""Turns: when each partition of a worker may pop, and how many jobs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from aioqless.client import Client
from aioqless.contrib.partitions.outages import NodeOutages
from aioqless.contrib.partitions.record import count_key
from aioqless.contrib.partitions.routing import partition_of
from aioqless.runtime.log import bound, log
from aioqless.worker import Shared, Worker
from aioqless.worker.context import NOT_NOW
from aioqless.worker.running_jobs import Run

# Seconds after which a pop that was not answered no longer makes others wait for a larger share.
LATE = 0.1
SMALL_SHARE = 6  # a part of the slots: less is not worth a pop while others are under way


class Request(NamedTuple):
    """What a partition waits for; `whole`: as many slots as that, and not fewer."""

    most: int
    whole: bool
    granted: asyncio.Future[int]


class Turns:
    """Gives free slots to the partitions that ask for them, in the order in which they ask.

    A partition with many jobs asks again when it has got some, behind those that wait. One pop at
    a time goes to each node, so that a silent node holds one share of the slots at most, and no
    slots while it is known to be away. With limits of queues, one pop at a time goes out: another
    might bring more than the limit.

    Owns the slots that were given for pops under way.
    """

    def __init__(self, shared: Shared, outages: NodeOutages, count: int) -> None:
        self.running = shared.running
        self.running.on_end.append(self._note_end)
        self._count = count
        self._of_partition: dict[int, TurnSlots] = {}
        self.lifecycle = shared.lifecycle
        self._outages = outages.partitions
        self.slots: list[TurnSlots] = []
        self._workers: Sequence[Worker] = ()
        self._clients: Sequence[Client] = ()
        self._waiting: dict[int, Request] = {}
        self._under_way: dict[int, float] = {}  # when each pop that is under way began
        self._given = 0  # slots for these
        self._paused: set[int] = set()
        self._claimed: set[int] = set()
        self._recovered = False  # that jobs of former processes wait again was logged
        self._scheduled = False
        self._timer: asyncio.TimerHandle | None = None

    def add(self, number: int) -> TurnSlots:
        """Return the slots of one more partition, by its number."""
        self.slots.append(TurnSlots(self, len(self.slots)))
        self._of_partition[number] = self.slots[-1]
        return self.slots[-1]

    def _note_end(self, run: Run) -> None:
        """Tell the poller of the run's partition alone: with all of them, each job costs 12 µs."""
        for call in self._of_partition[partition_of(run.job.jid, self._count)].on_end:
            call(run)

    def serve(self, workers: Sequence[Worker], clients: Sequence[Client]) -> None:
        """Give turns to these workers, whose slots were added in this order.

        Args:
            workers: The workers.
            clients: The client of each.
        """
        self._workers, self._clients = workers, clients

    async def run(self) -> None:
        """Give out slots that runs leave, until canceled."""
        try:
            while True:
                await self.running.slot_freed.wait()
                self.running.slot_freed.clear()
                self._grant()
        finally:
            if self._timer is not None:
                self._timer.cancel()

    async def take(self, index: int, most: int, *, whole: bool) -> int:
        """Wait for a turn and for slots; return their number, or 0 to look again."""
        self._paused.discard(index)
        if index not in self._claimed:
            self._note_claimed(index)
        await self.reach(index)
        if self.lifecycle.stopping or most <= 0:
            return 0
        request = Request(most, whole, asyncio.get_running_loop().create_future())
        self._waiting[index] = request
        self._grant()
        return await request.granted

    def give_back(self, index: int, count: int) -> None:
        """End a turn; slots are given out when the jobs of this pop have started."""
        self._given -= count
        del self._under_way[index]
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._grant)

    def leave(self, index: int) -> None:
        """Return 0 to a partition that waits, unless its jobs may have been popped before."""
        request = self._waiting.get(index)
        if request and (self.lifecycle.stopping or not request.whole):
            del self._waiting[index]
            if not request.granted.done():
                request.granted.set_result(0)

    def log_paused(self, index: int) -> None:
        """Note that a partition is paused; log it with the last one."""
        self._paused.add(index)
        if self._are_all(self._paused):
            with bound(partition=...):
                self.running.log_paused()
            self._paused.clear()

    def _note_claimed(self, index: int) -> None:
        """Note that a worker has its name; log jobs of former processes with the last one."""
        self._claimed.add(index)
        jobs = [self._workers[each].recovered for each in self._claimed]
        if self._recovered or not self._are_all(self._claimed):
            return
        if any(each is not None for each in jobs):
            self._recovered = True
            with bound(partition=...):
                log.info("worker.recovered", jobs=sum(each or 0 for each in jobs))

    def _are_all(self, indexes: set[int]) -> bool:
        """Return whether these are all partitions, except for those whose nodes are away."""
        return all(
            index in indexes or not outage.reached for index, outage in enumerate(self._outages)
        )

    async def reach(self, index: int) -> None:
        """Wait until the node of a partition answers, or the worker stops."""
        while not (self.lifecycle.stopping or self._outages[index].reached):
            await self._probe(index)

    async def _probe(self, index: int) -> None:
        """Ask a node that may be away for a sign of life, without holding slots.

        By a key: a node that has just started answers a PING, and refuses commands with keys until
        it has found the others.
        """
        asked, store = time.monotonic(), self._clients[index].store
        try:
            await store.connection.execute("GET", count_key(store))
        except NOT_NOW as error:
            await self._outages[index].wait_after_failure(error, asked)
        else:
            self._outages[index].record_success()

    def _grant(self) -> None:
        """Give free slots to the partitions that wait."""
        self._scheduled = False
        if not self._waiting:
            return
        now = time.monotonic()
        fresh = any(now - since < LATE for since in self._under_way.values())
        busy = {self._outages[index].node for index in self._under_way}
        limited = any(each.limit for each in self._workers[0].subscriptions)
        for index, request in list(self._waiting.items()):
            free = min(self.running.free, self.lifecycle.jobs_left) - self._given
            least = max(1, self.running.concurrency // SMALL_SHARE) if fresh else 1
            if free < least or (limited and busy):
                break
            node = self._outages[index].node
            if node in busy or (request.whole and request.most > free):
                continue
            del self._waiting[index]
            if request.granted.done():  # its poller was canceled
                continue
            count = min(request.most, free)
            self._given += count
            self._under_way[index] = now
            fresh = True
            busy.add(node)
            request.granted.set_result(count)
        if self._waiting and fresh and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LATE, self._grant_late)

    def _grant_late(self) -> None:
        self._timer = None
        self._grant()


class TurnSlots:
    """The slots of a worker, as the poller of one partition takes them."""

    def __init__(self, turns: Turns, index: int) -> None:
        self.on_end: list[Callable[[Run], None]] = []  # for the runs of its partition
        self._turns = turns
        self._index = index

    @property
    def by_jid(self) -> Mapping[str, Run]:
        """The runs of all partitions whose outcome is not stored yet."""
        return self._turns.running.by_jid

    @property
    def slots(self) -> Collection[Run]:
        """The runs of all partitions whose code has not stopped."""
        return self._turns.running.slots

    async def take(self, most: int, *, whole: bool = False) -> int:
        """Wait for a turn, and take slots; 0: look again."""
        return await self._turns.take(self._index, most, whole=whole)

    def give_back(self, count: int) -> None:
        """End the turn."""
        self._turns.give_back(self._index, count)

    def leave(self) -> None:
        """Let the poller return if it waits."""
        self._turns.leave(self._index)

    def log_paused(self) -> None:
        """Log that the worker is paused if all partitions are."""
        self._turns.log_paused(self._index)
