"""Pop as many jobs as there are free slots."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable, Collection, Mapping
from typing import Protocol, TypeAlias

from aioqless.client.job import Job
from aioqless.runtime.tasks import wait_for_event
from aioqless.worker.context import WorkerContext
from aioqless.worker.outage import NOT_NOW
from aioqless.worker.pop_attempt import NOTHING, PopAttempt, Popped
from aioqless.worker.running_jobs import Run
from aioqless.worker.stable_name import NameLease
from aioqless.worker.subscriptions import Subscription, Subscriptions

MOST_PER_POP = 100
LEAST_PER_POP = 10
BURST_PAUSE = 0.01  # seconds between pops of a burst while parts have not caught up yet
PATTERN_INTERVAL = 30.0  # seconds between listings of queues for patterns; a put wakes it sooner
NAMES_PER_PAGE = 1000
UPKEEP_INTERVAL = 0.1  # seconds between pops that look for more than the waiting jobs, if many wait

# Takes the job and the seconds its lock lasts; returns whether it has a handler.
StartJob: TypeAlias = Callable[[Job, float], bool]


class Slots(Protocol):
    """The running jobs of a worker, and its free slots, as its poller takes them."""

    @property
    def by_jid(self) -> Mapping[str, Run]:
        """The runs whose outcome is not stored yet."""

    @property
    def slots(self) -> Collection[Run]:
        """The runs whose code has not stopped."""

    @property
    def on_end(self) -> list[Callable[[Run], None]]:
        """Called when the code of a run has stopped, and when its outcome is stored."""

    async def take(self, most: int, *, whole: bool = False) -> int:
        """Wait for free slots, and take at most `most`, or all of them; 0: look again."""

    def give_back(self, count: int) -> None:
        """End what `take` began; runs that began meanwhile keep their slots."""

    def leave(self) -> None:
        """Let a poller that waits return."""

    def log_paused(self) -> None:
        """Log that the worker is paused, now that its poller is."""


class Poller:
    """Decides when to pop and how many. Owns the subscriptions and the pause."""

    def __init__(
        self,
        context: WorkerContext,
        running: Slots,
        *,
        lease: NameLease | None = None,
        caught_up: Callable[[], bool],
    ) -> None:
        self.idle = asyncio.Event()  # set while it waits, since nothing more was ready
        self.paused = False
        self._settings = settings = context.settings
        self.subscriptions = Subscriptions(settings.subscriptions, settings.order)
        self._store = context.store
        self._backend = context.client.backend
        self._worker = context.name
        self._running = running
        self._outage = context.outage
        self._lifecycle = context.lifecycle
        self._lease = lease
        self._caught_up = caught_up  # the parts have put the jobs due at the start
        self._woken = asyncio.Event()
        self._resumed = asyncio.Event()
        self._patterns_due = 0.0  # when patterns are next compared with the queues there are
        self._upkeep_due = 0.0  # when a pop next looks for due jobs and expired locks in any case
        self._last_jobs = -math.inf  # when a pop last brought jobs, by time.monotonic
        self._lifecycle.add_poller(self.wake)

    @property
    def quiet_for(self) -> float:
        """Seconds since a pop last brought jobs."""
        return time.monotonic() - self._last_jobs

    def wake(self, queue: str | None = None) -> None:
        """Pop soon: something may be ready in a queue, or without one in any, even a new one."""
        if queue is None:
            self._patterns_due = 0.0
        if queue is None or self.subscriptions.note_ready(queue):
            self._woken.set()

    def subscribe(self, subscription: Subscription) -> None:
        """Serve a queue from now on.

        Raises:
            ValueError: It has a weight where the order is not weighted.
        """
        self.subscriptions.add(subscription)
        self._patterns_due = 0.0
        self._woken.set()

    def unsubscribe(self, queue: str) -> None:
        """Stop popping from a queue; a pop under way may still bring a job.

        Raises:
            ValueError: It is not subscribed.
        """
        self.subscriptions.remove(queue)

    def pause(self) -> None:
        """Pop no more until `resume`. It is logged when no pop is under way."""
        self.paused = True
        self._resumed.clear()
        self._leave_waits()

    def resume(self) -> None:
        """Pop again."""
        self.paused = False
        self._resumed.set()

    def stop(self) -> bool:
        """Let `run` return, after a pop under way; return whether it was not stopping yet."""
        began = self._lifecycle.stop()
        self._resumed.set()
        self._leave_waits()
        return began

    def _note_end(self, run: Run) -> None:
        """Pop soon if the end of a run makes a difference: its queue was full, or a burst ends."""
        if self._settings.burst or run.job.queue in self.subscriptions.full:
            self._woken.set()

    async def run(self, start: StartJob) -> None:
        """Pop and start jobs until stopped, or until a burst has nothing more to do."""
        self._running.on_end.append(self._note_end)
        while not self._lifecycle.stopping:
            if self.paused:
                self._running.log_paused()
                await self._resumed.wait()
            elif self._lifecycle.recycling:
                self.stop()
            else:
                await self._sleep(await self._poll(start))

    async def _poll(self, start: StartJob) -> float:
        """Pop once and start the jobs; return the seconds until the next poll."""
        self._woken.clear()
        if self._lease is not None and not await self._lease.holds():
            return self._settings.poll
        if self.subscriptions.has_patterns and (pause := await self._resolve_patterns()):
            return pause
        caught_up = self._caught_up()
        quiet = not self._running.by_jid  # else a run may put more during the pop
        if (popped := await self._pop()) is None:
            return 0
        if jobs := popped.jobs:
            self._last_jobs = time.monotonic()
            begun = [start(Job(self._backend, job), job.expires - popped.now) for job in jobs]
            self._lifecycle.count_jobs(sum(begun))  # others have no handler here
            self.subscriptions.end_turn(jobs[-1].queue)
            queues = self.subscriptions
            more = popped.maybe_more or queues.has_limits or queues.exceed_a_batch
            if more or self._settings.burst:
                return 0
        elif self._settings.burst and not caught_up:
            return BURST_PAUSE
        elif self._settings.burst and quiet and self._lifecycle.note_empty(self.wake):
            self.stop()
        pause = self._settings.poll * random.uniform(1.0, 1.2)
        return min(pause, popped.due + 0.001) if popped.due > 0 else pause

    def _most(self) -> int:
        """Return how many jobs to ask for at most.

        At most a third of the slots: while one third runs, one is on its way in and one on its
        way out. A quarter takes a third more calls for the same jobs; a half leaves slots idle.
        """
        share = max(LEAST_PER_POP, self._settings.concurrency // 3)
        return min(share, MOST_PER_POP, self._lifecycle.jobs_left)

    async def _sleep(self, pause: float) -> None:
        if pause > 0 and not self._lifecycle.stopping:
            self.idle.set()
            await wait_for_event(self._woken, pause)
            self.idle.clear()

    def _leave_waits(self) -> None:
        self._woken.set()
        self._running.leave()

    async def _resolve_patterns(self) -> float:
        """List the queues for patterns, if that is due; return the pause in an outage."""
        now = time.monotonic()
        if now < self._patterns_due:
            return 0
        queues: list[str] = []
        self._patterns_due = now + PATTERN_INTERVAL  # a queue announced meanwhile resets it
        try:
            while page := await self._store.queue_names(offset=len(queues), count=NAMES_PER_PAGE):
                queues += page
                if len(page) < NAMES_PER_PAGE:
                    break
        except NOT_NOW as error:
            self._patterns_due = 0.0
            return self._outage.record_failure(error, now)
        self._outage.record_success()
        self.subscriptions.set_known(queues)
        return 0

    def _order(self, now: float) -> str:
        """Return the order of a pop. A busy worker looks for due jobs in some of its pops only."""
        order = self.subscriptions.script_order
        if order == "ordered" and now < self._upkeep_due:
            return "waiting"
        self._upkeep_due = now + UPKEEP_INTERVAL
        return order

    async def _pop(self) -> Popped | None:
        """Pop jobs when slots are free; while Redis is unavailable, try again, until stopped.

        Returns:
            What was popped; None if nothing was asked.
        """
        with self._store.request() as request:
            attempt = PopAttempt(self._store, self._worker, request)
            while taken := await self._take_slots(attempt):
                try:
                    if not attempt.unanswered and (self.paused or self._lifecycle.stopping):
                        return None
                    self._woken.clear()
                    queues = (run.job.queue for run in self._running.slots)
                    batch = self.subscriptions.next_batch(queues)
                    if not (batch or attempt.unanswered):
                        return NOTHING
                    order = self._order(time.monotonic())
                    # A stop waits for this: canceling it would leave locked jobs that no one runs.
                    popped = await attempt.send(taken, order, batch)
                    self._outage.record_success(permitted=True)
                    return await attempt.without_lost(popped) if popped.jobs else popped
                except NOT_NOW as error:
                    pause = self._outage.record_failure(error, attempt.sent_at)
                finally:
                    self._running.give_back(taken)
                if self._lifecycle.stopping:
                    return NOTHING
                await self._sleep(pause)
        return None

    async def _take_slots(self, attempt: PopAttempt) -> int:
        """Wait for slots; an unanswered attempt takes as many again, whatever it brought."""
        if attempt.unanswered:
            return await self._running.take(attempt.count, whole=True)
        return await self._running.take(self._most())
