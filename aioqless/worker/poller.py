"""Ask Redis for as many jobs as there are free slots."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from aioqless.client.job import Job
from aioqless.client.job.record import record_of_row
from aioqless.client.job.services import Services
from aioqless.log import log
from aioqless.store import Store
from aioqless.waiting import happens
from aioqless.worker.lock_revalidation import LATE, still_held
from aioqless.worker.outage import NOT_NOW, Outage
from aioqless.worker.recycling import Share
from aioqless.worker.run import Run
from aioqless.worker.runner import Runner
from aioqless.worker.settings import Settings
from aioqless.worker.subscriptions import Subscription, Subscriptions

MOST_PER_POP = 100
LEAST_PER_POP = 10
MOMENT = 0.01  # seconds between pops of a burst that can't know yet whether there is anything to do
LOOK = 30.0  # seconds between looks for queues that patterns match; what is put wakes it sooner
NAMES_PER_PAGE = 1000


class Poller:
    """Owns the subscriptions and the flag that wakes it."""

    def __init__(
        self,
        store: Store,
        worker: str,
        runner: Runner,
        outage: Outage,
        settings: Settings,
        services: Services,
    ) -> None:
        self.idle = asyncio.Event()  # set while the last pop brought nothing
        self.may_pop: Callable[[], Awaitable[bool]] | None = None  # asked before each pop
        self.all_looked: Callable[[], bool] = lambda: (
            True
        )  # whether those who bring jobs have brought what was due at the start
        self.notify_stopping: Callable[[], object] = lambda: None  # called when it is told to stop
        self.stopping = False  # whether it was told to pop no more
        self.subscriptions = Subscriptions(settings.subscriptions, settings.order)
        self.share = Share(settings)
        self._store = store
        self._worker = worker
        self._runner = runner
        self._outage = outage
        self._settings = settings
        self._services = services
        self._woken = asyncio.Event()
        self._plenty = asyncio.Event()  # set while the last pop brought all it asked for
        self._asked = 0  # for how many jobs pops are under way
        self._going = asyncio.Event()  # cleared while it is paused
        self._going.set()
        self._rests = (
            False  # whether a pause has come to be: nothing is under way that may still bring a job
        )
        self._look_at = 0.0  # when patterns next ask which queues there are
        runner.ended = self._make_room

    @property
    def paused(self) -> bool:
        return not self._going.is_set()

    def wake(self, queue: str | None = None) -> None:
        """There may be something to pop, in a queue if one is given, else in any, even in one that
        nobody heard of; bursts count once."""
        if queue is None:
            self._look_at = 0.0
        if queue is None or self.subscriptions.hear(queue):
            self._woken.set()

    def subscribe(self, subscription: Subscription) -> None:
        """Serve a queue from now on. Raises ValueError."""
        self.subscriptions.add(subscription)
        self._look_at = 0.0
        self._woken.set()

    def unsubscribe(self, queue: str) -> None:
        """Pop no more of it, but what a pop that is under way brings. Raises ValueError."""
        self.subscriptions.remove(queue)

    def pause(self) -> None:
        """Pop no more until `resume`, but what a pop that is under way brings; when there is none
        any more, the log says so."""
        self._going.clear()
        self._woken.set()
        self._runner.vacancy.set()

    def resume(self) -> None:
        """Pop again."""
        self._going.set()

    def stop(self) -> None:
        """Let `run` return, after a pop that is under way."""
        self.stopping = True
        self.notify_stopping()
        self._woken.set()
        self._going.set()
        self._plenty.set()
        self._runner.vacancy.set()

    async def run(self) -> None:
        """Pop and start jobs until told to stop, or until there is nothing more to do."""
        async with asyncio.TaskGroup() as both:
            both.create_task(self._poll_always())
            both.create_task(self._poll_always(ahead=True))

    async def _poll_always(self, *, ahead: bool = False) -> None:
        """Poll. `ahead` is the second that does, while there is plenty: Redis works on its pop as
        the jobs of the other begin."""
        while not self.stopping:
            if self.paused:
                await self._rest()
            elif self.share.done:
                self.stop()
            elif ahead and not self._plenty.is_set():
                await self._plenty.wait()
            elif self._free > 0:
                pause = await self._poll()
                await self._sleep(0 if ahead else pause)
            else:
                self._runner.vacancy.clear()
                await self._runner.vacancy.wait()

    async def _rest(self) -> None:
        if not (self._asked or self._rests):
            self._rests = True
            log.info("worker.paused", worker=self._worker, running=len(self._runner.running))
        await self._going.wait()
        self._rests = False

    @property
    def _free(self) -> int:
        """For how many more jobs there is room than are asked for already."""
        return self._runner.free - self._asked

    @property
    def _may_overlap(self) -> bool:
        """Whether a pop can be right before it is known what another brings."""
        return (
            not self.subscriptions.has_limits
            and self._settings.order != "round-robin"
            and self._settings.max_jobs is None
        )

    def _make_room(self, run: Run) -> None:
        """A run has ended; a queue that was full may give another, and it may have been the last of
        a burst."""
        if self._settings.burst or run.job.queue in self.subscriptions.full:
            self._woken.set()

    async def _sleep(self, pause: float) -> None:
        if pause > 0 and not self.stopping:
            self.idle.set()
            await happens(self._woken, pause)
            self.idle.clear()

    async def _poll(self) -> float:
        """Pop once; returns the seconds to wait until the next time."""
        self._woken.clear()
        if self.may_pop is not None and not await self.may_pop():
            return self._settings.poll
        if (
            self.subscriptions.has_patterns
            and asyncio.get_running_loop().time() >= self._look_at
            and (away := await self._look())
        ):
            return away
        # A quarter of the slots: while one runs, two are on their way in and one on its way out, so
        # nobody waits for the other.
        share = max(LEAST_PER_POP, self._settings.concurrency // 4)
        asked = self.share.most(min(self._free, share, MOST_PER_POP))
        if asked <= 0 or self.paused:  # another pop took the room meanwhile
            return 0
        looked = self.all_looked()
        at_rest = (
            not self._runner.running and not self._asked
        )  # else what runs may put more while the pop is under way
        self._asked += asked
        try:
            rows, due, now = await self._pop(asked)
        finally:
            self._asked -= asked
        if len(rows) < asked:
            self._plenty.clear()
            self._runner.vacancy.set()  # the other may be waiting for room that these didn't take
        elif self._may_overlap:
            self._plenty.set()
        for row in rows:
            record = record_of_row(row)
            self._runner.start(Job(self._services, record), record["expires"] - float(now))
        if not rows:
            if self._settings.burst and not looked:
                return MOMENT
            if at_rest and self._settings.burst:
                self.stop()
            wait = self._settings.poll * random.uniform(1.0, 1.2)
            return min(wait, float(due) + 0.001) if due and float(due) > 0 else wait
        log.debug("poller.popped", jobs=len(rows), asked=asked)
        self.share.began(len(rows))
        self.subscriptions.took(record["queue"])
        return 0

    async def _look(self) -> float:
        """Learn which queues there are; returns the seconds to wait when Redis is away."""
        queues: list[str] = []
        asked = time.monotonic()
        self._look_at = (
            asyncio.get_running_loop().time() + LOOK
        )  # what is said meanwhile has it look again
        try:
            while page := await self._store.queue_names(offset=len(queues), count=NAMES_PER_PAGE):
                queues += page
                if len(page) < NAMES_PER_PAGE:
                    break
        except NOT_NOW as away:
            self._look_at = 0.0
            return self._outage.lost(away, asked)
        self._outage.found()
        self.subscriptions.meet(queues)
        return 0

    def _batch(self) -> list[dict[str, Any]]:
        """The queues to ask, with what may still be taken of each."""
        limited = self.subscriptions.has_limits
        return self.subscriptions.batch(
            Counter(run.job.queue for run in self._runner.slots) if limited else {}
        )

    async def _pop(self, asked: int) -> Any:
        """Jobs' rows, when more become due, and the time by Redis' clock. While Redis is away it is
        asked again under the same identity, so that jobs which an earlier try locked are handed out
        by the next that gets through; nothing, when told to stop meanwhile."""
        with self._store.request() as request:
            tried = False
            while True:
                self._woken.clear()
                batch = self._batch()
                if not (batch or tried):
                    return [], "", "0"
                tried = True
                since = time.monotonic()
                try:
                    # Stopping waits for this: a pop that is cut off would leave jobs locked that
                    # nobody runs.
                    answer = await self._store.pop_many(
                        worker=self._worker,
                        count=asked,
                        order=self.subscriptions.script_order,
                        batch=batch,
                        request=request,
                    )
                except NOT_NOW as away:
                    pause = self._outage.lost(away, since)
                else:
                    self._outage.permitted = True
                    self._outage.found()
                    if answer[0] and time.monotonic() - since > LATE:
                        answer[0] = await still_held(self._store, self._worker, answer[0])
                    return answer
                if self.stopping:
                    return [], "", "0"
                await self._sleep(pause)
