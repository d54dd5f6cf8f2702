"""Turns: when each partition of a worker may pop, and how many jobs."""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

from aioqless.contrib.partitions.outages import PartitionOutage
from aioqless.contrib.partitions.routing import count_key
from aioqless.runtime.log import bound
from aioqless.store import ScriptStore
from aioqless.worker.context import NOT_NOW
from aioqless.worker.shared import Shared

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
    """

    def __init__(self, shared: Shared) -> None:
        self.lifecycle = shared.lifecycle
        self.running = shared.running
        self.waiting: dict[PartitionSlots, Request] = {}
        self.under_way: dict[PartitionSlots, float] = {}  # when each pop began

    async def run(self) -> None:
        """Give out slots that runs and pops leave, until canceled."""
        while True:
            await self.running.slot_freed.wait()
            self.running.slot_freed.clear()
            self.grant()

    def grant(self) -> None:
        """Give free slots to the partitions that wait."""
        now, running = time.monotonic(), self.running
        fresh = any(now - since < LATE for since in self.under_way.values())
        busy = {slots.outage.node for slots in self.under_way}
        limited = any(each.limit for each in self.lifecycle.subscriptions)
        for slots, (most, whole, granted) in list(self.waiting.items()):
            free = min(running.free, self.lifecycle.jobs_left - running.reserved)
            least = max(1, running.concurrency // SMALL_SHARE) if fresh else 1
            if free < least or (limited and busy):
                break
            node = slots.outage.node
            if node in busy or (most > free if whole else running.paused):
                continue
            del self.waiting[slots]
            if granted.done():  # its poller was canceled
                continue
            granted.set_result(min(most, free))
            running.reserved += min(most, free)
            self.under_way[slots] = now
            fresh = True
            busy.add(node)
            asyncio.get_running_loop().call_later(LATE, self.grant)  # smaller shares, too


class PartitionSlots:
    """The slots of a worker, as the poller of one partition takes them."""

    def __init__(self, turns: Turns, outage: PartitionOutage, store: ScriptStore) -> None:
        self.outage = outage
        self._turns = turns
        self._store = store

    async def take(self, most: int, *, whole: bool = False) -> int:
        """Wait for a turn, and take slots; 0: look again."""
        await self.reach()
        if self._turns.lifecycle.stopping or most <= 0:
            return 0
        request = Request(most, whole, asyncio.get_running_loop().create_future())
        self._turns.waiting[self] = request
        self._turns.grant()
        return await request.granted

    def give_back(self, count: int) -> None:
        """End the turn; slots are given out when the jobs of this pop have started."""
        del self._turns.under_way[self]
        with bound(partition=...):
            self._turns.running.give_back(count)

    def leave(self) -> None:
        """Return 0 to the poller if it waits, unless its jobs may have been popped before."""
        request = self._turns.waiting.get(self)
        if request and (self._turns.lifecycle.stopping or not request.whole):
            del self._turns.waiting[self]
            if not request.granted.done():
                request.granted.set_result(0)

    async def reach(self) -> None:
        """Wait until the node answers, or the worker stops.

        It is asked for a key, without holding slots: a node that has just started answers a PING,
        and refuses commands with keys until it has found the others.
        """
        while not (self._turns.lifecycle.stopping or self.outage.reached):
            asked = time.monotonic()
            try:
                await self._store.connection.execute("GET", count_key(self._store.namespace))
            except NOT_NOW as error:
                await self.outage.wait_after_failure(error, asked)
            else:
                self.outage.record_success()
