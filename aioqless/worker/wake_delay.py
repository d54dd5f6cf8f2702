"""WakeDelay: of many idle workers, lets few pop for one job that was put."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

# Seconds between the pops of idle workers, on average: time for a pop, and to hear of it.
STEP = 0.002
MOST_RIVALS = 500.0  # so a worker waits for a second at most


class WakeDelay:
    """Decides when an idle worker pops for a queue that has become ready.

    All idle workers hear of the first job in a queue, and one gets it. So only some of them pop at
    once, and the others wait for a random time, until they hear that the jobs are taken, or that
    some are left. None knows how many there are: like the stations of an Ethernet, each estimates
    that by what happens. The estimate grows with a pop that came too late, and shrinks when no
    other worker came while this worker waited. One that is alone so pops at once.

    Args:
        wake: Lets the worker pop.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._rivals = 1.0  # the estimate; this worker counts, too
        self._waits: dict[str, asyncio.TimerHandle] = {}  # by queue
        self._popping_for: str | None = None  # the queue that the latest pop was for
        self._waited = False
        self._in_vain = False
        self._taken = False

    def start(self, queue: str, busy: float) -> None:
        """Let the worker pop now or later: a queue that it serves has become ready.

        Args:
            queue: The queue.
            busy: The share of the worker's slots that run a job. The more do, the rarer it is
                first.
        """
        if random.random() < (1 - busy) / self._rivals:
            self._pop(queue, waited=False)
            return
        if queue in self._waits:
            return
        delay = random.uniform(0, self._rivals * STEP)
        loop = asyncio.get_running_loop()
        self._waits[queue] = loop.call_later(delay, lambda: self._pop(queue, waited=True))

    def note_taken(self, queue: str) -> None:
        """End the wait for a queue: a worker has taken all of its jobs that may start."""
        if wait := self._waits.pop(queue, None):
            wait.cancel()
        if queue == self._popping_for:
            self._taken = True
            self._learn()

    def end_waits(self) -> None:
        """End all waits: a pop begins, which finds what any queue has."""
        for wait in self._waits.values():
            wait.cancel()
        self._waits.clear()

    def note_pop(self, *, found: bool) -> None:
        """Note whether a pop brought jobs."""
        if self._popping_for is None:
            return
        if found:
            if self._waited:
                self._rivals = max(1.0, self._rivals / 2)
            self._popping_for = None
        else:
            self._in_vain = True
            self._learn()

    def _pop(self, queue: str, *, waited: bool) -> None:
        self.end_waits()
        self._popping_for, self._waited = queue, waited
        self._in_vain = self._taken = False
        self._wake()

    def _learn(self) -> None:
        """Note a pop that came too late; the message of it may arrive before or after its reply."""
        if self._in_vain and self._taken:
            self._rivals = min(self._rivals * 4, MOST_RIVALS)
            self._popping_for = None
