"""Registration: which queues this worker serves, and a warning about queues whose jobs wait."""

from __future__ import annotations

import asyncio
import time

from aioqless.client.coverage import REGISTER_INTERVAL, matches
from aioqless.errors import AioqlessError
from aioqless.runtime.log import log
from aioqless.runtime.tasks import wait_for_event
from aioqless.worker.context import NOT_NOW, WorkerContext

LOOKS = 2
LOOK_PAUSE = 300.0  # seconds between two pairs of looks, which count the jobs of all queues
MOST_QUEUES = 1000  # that a look reads
MOST_ANNOUNCED = 10_000  # names of queues that are kept; they come from Redis


class Registration:
    """Says in Redis what a worker serves, and logs once which queues are misspelled.

    A queue is unserved when two looks in a row find jobs that wait there, and no worker: others may
    be starting. Other reasons why jobs wait are logged for the queues that this worker serves. It
    looks twice at the start, and later at most every five minutes, after a queue was announced that
    this worker doesn't serve and that no look has seen.

    Args:
        context: The worker.
        interval: Seconds between two registrations.
        logged: The queues that were logged; default: none yet.
    """

    def __init__(
        self,
        context: WorkerContext,
        *,
        interval: float = REGISTER_INTERVAL,
        logged: set[str] | None = None,
    ) -> None:
        self._client = context.client
        self._worker = context.name
        self._lifecycle = context.lifecycle
        self._lifecycle.on_change.append(self._note_change)
        self._outage = context.outage
        self._interval = interval
        self._woken = asyncio.Event()
        self._seen: set[str] = set()  # queues that a look has seen, or that were announced
        self._looks_left = LOOKS
        self._quiet_until = 0.0  # by time.monotonic; no looks before
        # why the jobs of a queue wait, as the last look found it
        self._suspects: dict[str, str] = {}
        self._logged: set[str] = set() if logged is None else logged

    def _note_change(self) -> None:
        """Register soon if the subscriptions have changed."""
        if not self._lifecycle.stopping:
            self._woken.set()

    def _served(self) -> list[str]:
        return [each.queue for each in self._lifecycle.subscriptions]

    def note_ready(self, queue: str) -> None:
        """Note that a queue has a ready job."""
        if queue not in self._seen and len(self._seen) < MOST_ANNOUNCED:
            self._seen.add(queue)
            self._looks_left = LOOKS

    async def run(self) -> None:
        """Register until canceled, and look for queues without workers."""
        while True:
            self._woken.clear()
            asked = time.monotonic()
            try:
                await self._client.internals.store.register(
                    worker=self._worker, queues=self._served()
                )
                if self._looks_left and time.monotonic() >= self._quiet_until:
                    await self._look()
            except NOT_NOW as error:
                await self._outage.wait_after_failure(error, asked)
                continue
            except AioqlessError as error:  # it is only a service to the operator
                log.debug("worker.registration_failed", error=str(error))
            await wait_for_event(self._woken, self._interval)

    async def _look(self) -> None:
        coverage = await self._client.coverage(most=MOST_QUEUES)
        self._looks_left -= 1
        if not self._looks_left:
            self._quiet_until = time.monotonic() + LOOK_PAUSE
        self._seen.update(list(coverage.workers)[:MOST_ANNOUNCED])
        mine = set(self._served())
        suspects = {gap.queue: gap for gap in coverage.unserved}
        for queue, gap in suspects.items():
            if self._suspects.get(queue) == "no_worker" and self._is_new(queue):
                log.warning("queue.unserved", queue=queue, why=str(gap))
        for queue, delay in coverage.delays.items():
            if (
                queue not in suspects
                and self._suspects.get(queue) == delay.reason
                and any(matches(queue, pattern) for pattern in mine)
                and self._is_new(queue)
            ):
                log.warning("queue.delayed", queue=queue, reason=delay.reason, why=str(delay))
        self._suspects = {queue: delay.reason for queue, delay in coverage.delays.items()}
        self._suspects |= dict.fromkeys(suspects, "no_worker")
        for gap in coverage.unused:
            # Without jobs in a queue of a similar name, it may only be too early for the first.
            if gap.queue in mine and gap.similar in suspects and self._is_new(gap.queue):
                log.warning("queue.unused", queue=gap.queue, why=str(gap))

    def _is_new(self, queue: str) -> bool:
        """Return whether a queue was not logged yet."""
        new = queue not in self._logged
        self._logged.add(queue)
        return new
