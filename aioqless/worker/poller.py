"""Poller: decides when to pop and how many; PopAttempt: one pop, sent until Redis answers."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from aioqless.client.job.decoding import JobFields, decode_row
from aioqless.errors import ScriptError
from aioqless.runtime.log import log
from aioqless.runtime.tasks import wait_for_event
from aioqless.store import HeartbeatManyRow, PopManyRow, Store
from aioqless.worker.context import NOT_NOW, WorkerContext
from aioqless.worker.running_jobs import Run, RunningJobs
from aioqless.worker.subscriptions import Subscriptions
from aioqless.worker.wake_delay import WakeDelay

MOST_PER_POP = 100
LEAST_PER_POP = 10
BURST_PAUSE = 0.01  # seconds between pops of a burst while parts have not caught up yet
PATTERN_INTERVAL = 30.0  # seconds between listings of queues for patterns; a put wakes it sooner
NAMES_PER_PAGE = 1000
UPKEEP_INTERVAL = 0.1  # seconds between pops that look for more than the waiting jobs, if many wait
IDLE_POP_INTERVAL = 600.0  # seconds between pops of an idle worker; between them it only looks
LATE = 0.5  # seconds from a pop to its reply, after which its locks are renewed before jobs begin

# Takes jobs, each with the seconds its lock lasts; returns how many have a handler.
StartJobs: TypeAlias = Callable[[Iterable[tuple[JobFields, float]]], int]


class Slots(Protocol):
    """Free slots for the jobs of pops: of one worker, or shared by several in turn."""

    async def take(self, most: int, *, whole: bool = False) -> int:
        """Wait for free slots, and take at most `most`, or all of them; 0: look again."""

    def give_back(self, count: int) -> None:
        """End what `take` began; runs that began meanwhile keep their slots."""

    def leave(self) -> None:
        """Let a poller that waits return."""


class Popped(NamedTuple):
    """What a pop brought.

    Attributes:
        jobs: The jobs.
        maybe_more: Whether more may be ready: as many were popped as were asked for.
        due: Seconds until more become due; 0 if none will, or that is unknown.
        now: Redis' time.
    """

    jobs: list[JobFields]
    maybe_more: bool = False
    due: float = 0.0
    now: float = 0.0


NOTHING = Popped([])


class Poller:
    """Decides when to pop and how many. Owns whose turn it is among the queues."""

    def __init__(
        self,
        context: WorkerContext,
        running: RunningJobs,
        slots: Slots,
        *,
        holds_name: Callable[[], Awaitable[bool]],
        caught_up: Callable[[], bool],
        takes_bulks: bool = False,
    ) -> None:
        self.idle = asyncio.Event()  # set while it waits, since nothing more was ready
        self._settings = settings = context.settings
        self._lifecycle = context.lifecycle
        self.subscriptions = Subscriptions(self._lifecycle.subscriptions, settings.order)
        self._store = context.store
        self._worker = context.name
        self._running = running
        self._slots = slots
        self._outage = context.outage
        self._holds_name = holds_name
        self._caught_up = caught_up  # the parts have put the jobs due at the start
        self._takes_bulks = takes_bulks  # a handler takes many jobs at once
        self._woken = asyncio.Event()
        self._wake_delay = WakeDelay(self._woken.set)
        self._was_idle = False  # since the latest pop that was answered
        self._patterns_due = 0.0  # when patterns are next compared with the queues there are
        self._upkeep_due = 0.0  # when a pop next looks for due jobs and expired locks in any case
        self._redis_clock = 0.0  # Redis' time minus time.monotonic, by the latest pop
        self._pop_due = 0.0  # until when it suffices to ask whether a pop would bring anything
        self._last_jobs = -math.inf  # when a pop last brought jobs, by time.monotonic
        self._lifecycle.add_poller(self._look_again)

    @property
    def quiet_for(self) -> float:
        """Seconds since a pop last brought jobs."""
        return time.monotonic() - self._last_jobs

    def wake(self, queue: str | None = None) -> None:
        """Pop soon: something may be ready in a queue, or without one in any, even a new one."""
        if queue is None:
            self._patterns_due = 0.0
            self._woken.set()
        elif self.subscriptions.note_ready(queue):
            if self.idle.is_set():
                self._wake_delay.start(queue, busy=self._running.busy)
            else:
                self._woken.set()

    def note_taken(self, queue: str) -> None:
        """Stop waiting to pop: a worker has taken all jobs of a queue that may start."""
        self._wake_delay.note_taken(queue)

    def _look_again(self) -> None:
        """Leave all waits: the subscriptions have changed, or the worker is to stop."""
        self.subscriptions.set_given(self._lifecycle.subscriptions)
        self.wake()
        self._slots.leave()

    def note_end(self, run: Run) -> None:
        """Pop soon if the end of a run makes a difference: its queue was full, or a burst ends."""
        if self._settings.burst or run.job.queue in self.subscriptions.full:
            self._woken.set()

    async def run(self, start: StartJobs) -> None:
        """Pop and start jobs until stopped, or until a burst has nothing more to do."""
        while not self._lifecycle.stopping:
            if self._lifecycle.recycling:
                self._lifecycle.stop()
            else:
                await self._sleep(await self._poll(start))

    async def _poll(self, start: StartJobs) -> float:
        """Pop once and start the jobs; return the seconds until the next poll."""
        if self._woken.is_set() or self._settings.burst:
            self._pop_due = 0.0
        self._woken.clear()
        if not await self._holds_name():
            return self._settings.poll
        caught_up = self._caught_up()
        quiet = not self._running.by_jid  # else a run may put more during the pop
        jobs_left = self._lifecycle.jobs_left
        if (popped := await self._pop()) is None:
            return 0
        if jobs := popped.jobs:
            self._last_jobs = time.monotonic()
            locked = [(job, job.expires - popped.now) for job in jobs]
            self._lifecycle.count_jobs(start(locked))  # others have no handler here
            self.subscriptions.end_turn(jobs[-1].queue)
            more = popped.maybe_more or self.subscriptions.change_by_batch
            if more or self._settings.burst:
                return 0
        elif self._settings.burst and not caught_up:
            return BURST_PAUSE
        elif (
            self._settings.burst
            and quiet
            and self._lifecycle.note_empty(self._look_again, jobs_left)
        ):
            self._lifecycle.stop()
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
            self._was_idle = True
            await wait_for_event(self._woken, pause)
            self.idle.clear()

    async def _resolve_patterns(self) -> None:
        """List the queues for patterns, if that is due."""
        now = time.monotonic()
        if not self.subscriptions.has_patterns or now < self._patterns_due:
            return
        queues: list[str] = []
        self._patterns_due = now + PATTERN_INTERVAL  # a queue announced meanwhile resets it
        try:
            while page := await self._store.queue_names(offset=len(queues), count=NAMES_PER_PAGE):
                queues += page
                if len(page) < NAMES_PER_PAGE:
                    break
        except NOT_NOW:
            self._patterns_due = 0.0
            raise
        self.subscriptions.set_known(queues)

    def _order(self, now: float) -> str:
        """Return the order of a pop. A busy worker looks for due jobs in some of its pops only."""
        order = self.subscriptions.script_order
        if order == "ordered" and now < self._upkeep_due:
            return "waiting"
        self._upkeep_due = now + UPKEEP_INTERVAL
        return order

    async def _look(self, batch: Sequence[PopManyRow]) -> Popped | None:
        """Return what a pop would bring if that is nothing; None: it may bring jobs.

        An idle worker looks, since that takes a few commands however many queues there are. A look
        ends no outage: a Redis that is read-only, or full, answers it, too.
        """
        due = await self._store.ready(queues=[row["queue"] for row in batch])
        if self._outage.reached:
            self._outage.record_success(permitted=True)
        if not due:
            return NOTHING
        left = float(due) - self._redis_clock - time.monotonic()
        return Popped([], due=left) if left > 0 else None

    async def _pop(self) -> Popped | None:
        """Pop jobs when slots are free; while Redis is unavailable, try again, until stopped.

        Returns:
            What was popped; None if nothing was asked.
        """
        with self._store.request() as request:
            attempt = PopAttempt(self._store, self._worker, request, self._settings.version_label)
            # An unanswered attempt takes as many slots again, whatever it brought.
            while taken := await self._slots.take(
                attempt.count or self._most(), whole=attempt.unanswered
            ):
                began = time.monotonic()
                try:
                    if self._lifecycle.stopping and not attempt.unanswered:
                        return None
                    self._woken.clear()
                    self._wake_delay.end_waits()
                    await self._resolve_patterns()  # a queue may be new since the wait for slots
                    queues = (run.job.queue for run in self._running.slots)
                    batch = self.subscriptions.next_batch(queues)
                    if not (batch or attempt.unanswered):
                        return NOTHING
                    may_look = self._outage.reached and time.monotonic() < self._pop_due
                    may_look = may_look and not attempt.unanswered
                    if may_look and (nothing := await self._look(batch)):
                        return nothing
                    order = self._order(time.monotonic())
                    # A stop waits for this: canceling it would leave locked jobs that no one runs.
                    popped = await attempt.send(
                        taken, order, batch, together=self._takes_bulks, idle=self._was_idle
                    )
                    self._was_idle = False
                    self._pop_due = 0.0 if popped.jobs else time.monotonic() + IDLE_POP_INTERVAL
                    self._redis_clock = popped.now - time.monotonic()
                    self._wake_delay.note_pop(found=bool(popped.jobs))
                    self._outage.record_success(permitted=True)
                    return await attempt.without_lost(popped) if popped.jobs else popped
                except NOT_NOW as error:
                    pause = self._outage.record_failure(error, began)
                finally:
                    self._slots.give_back(taken)
                if self._lifecycle.stopping:
                    return NOTHING
                await self._sleep(pause)
        return None


class PopAttempt:
    """A pop that is sent until Redis answers, each time with the same request id.

    Jobs which an unanswered one locked are so returned by the next that gets through.
    """

    def __init__(self, store: Store, worker: str, request: str, version: str | None) -> None:
        self.count = 0  # how many jobs were asked for
        self.unanswered = False  # it was sent, and may have brought jobs
        self.sent_at = 0.0  # by time.monotonic
        self._store = store
        self._worker = worker
        self._request = request
        self._version = version  # of the application

    async def send(
        self,
        count: int,
        order: str,
        batch: Sequence[PopManyRow],
        *,
        together: bool = False,
        idle: bool = False,
    ) -> Popped:
        """Send it, first or again; an error leaves it unanswered.

        Args:
            count: Maximum number of jobs; the same each time.
            order: How the script goes through the queues.
            batch: The queues.
            together: Jobs that a handler takes at once come together, and count as one.
            idle: The worker was idle: if it leaves waiting jobs, others are woken.
        """
        self.count, self.unanswered, self.sent_at = count, True, time.monotonic()
        rows, due, now = await self._store.pop_many(
            worker=self._worker,
            count=count,
            order=order,
            batch=batch,
            together="1" if together else None,
            idle="1" if idle else None,
            version=self._version,
            request=self._request,
        )
        jobs = [decode_row(row, self._worker) for row in rows]
        if jobs:
            log.debug("poller.popped", jobs=len(jobs), asked=count)
        return Popped(jobs, len(rows) >= count, float(due or 0), float(now))

    async def without_lost(self, popped: Popped) -> Popped:
        """Return a reply without the jobs that others have by now, if it was late.

        The connection was slow, or the loop was blocked. A job that another worker has taken over
        meanwhile would only run twice, so all locks are renewed.
        """
        if time.monotonic() - self.sent_at <= LATE:
            return popped
        jobs = popped.jobs
        batch: list[HeartbeatManyRow] = [{"jid": job.jid, "fence": job.fence} for job in jobs]
        try:
            answers = await self._store.heartbeat_many(worker=self._worker, batch=batch)
        except NOT_NOW:  # unknown until Redis is back; then the lock renewer finds out
            return popped
        held = []
        for job, answer in zip(jobs, answers, strict=True):
            if isinstance(answer, ScriptError):
                about = {"jid": job.jid, "klass": job.klass, "queue": job.queue}
                log.warning("job.stale_pop_dropped", **about, why=str(answer))
            else:
                held.append(job)
        return popped._replace(jobs=held)
