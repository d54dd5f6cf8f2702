"""Run: one attempt of one job in this worker; RunningJobs: the table of all of them."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from aioqless.client.job import Job, StopReason
from aioqless.handlers import Handler
from aioqless.runtime.log import log


@dataclass(eq=False, slots=True)
class Run:
    """One attempt. The runner makes it, starts its task and ends it; any part may call `stop`.

    Times are by time.monotonic, which all threads share. The lock lasted `lock` seconds when it was
    renewed last, and lasts at least until `deadline`. Only differences of Redis' clock are used:
    after a fail-over it may be another clock.
    """

    job: Job
    started: float
    lock: float
    deadline: float
    renewer: object = None  # the lock renewer of the worker whose run it is
    handler: Handler | None = None  # None: no handler here claims the klass
    task: asyncio.Task[None] | None = None  # runs the handler, while it may be canceled
    watcher: asyncio.Task[None] | None = None  # the runner's; ends when the outcome is stored
    ended: bool = False  # the handler has
    stopped_by: StopReason | None = None
    result: object = None
    kept: bytes | None = None  # the result as it is stored
    answer: bytes | None = None  # the result for the job that has called it
    data: bytes | None = None  # the job's data, where the handler changed it
    error: BaseException | None = None
    abandoned: bool = False  # its code does not stop, and the worker ends without it
    timed_from: float | None = None  # its timeout counts from here, if not from `started`

    @property
    def timeout(self) -> float | None:
        """The maximum duration, in seconds."""
        return self.handler.timeout if self.handler else None

    @property
    def log_fields(self) -> dict[str, str]:
        """The fields of every log line about it."""
        return {"jid": self.job.jid, "klass": self.job.klass, "queue": self.job.queue}

    def time_left(self) -> float | None:
        """Return the seconds until it times out; None when it has no timeout."""
        if self.timeout is None:
            return None
        since = self.started if self.timed_from is None else self.timed_from
        if since == math.inf:
            return self.timeout
        return max(0.0, since + self.timeout - time.monotonic())

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Stop its timeout from counting while it waits for a thread or a process."""
        self.timed_from = math.inf
        try:
            yield
        finally:
            self.timed_from = time.monotonic()

    def stop(self, reason: StopReason) -> None:
        """Record why, then cancel the handler; the first reason counts."""
        if self.stopped_by is None:
            self.stopped_by = reason
            self.job.stop(reason)
            if self.task is not None:
                self.task.cancel()


class RunningJobs:
    """The runs of one worker, or of several that share their slots. Written by runners alone.

    A run leaves `slots` when its code has stopped, and `by_jid` when Redis has its outcome.
    """

    def __init__(self, worker: str, concurrency: int) -> None:
        self._worker = worker  # its name, for the log
        self.by_jid: dict[str, Run] = {}
        self.slots: set[Run] = set()
        self.slot_freed = asyncio.Event()
        self.on_end: list[Callable[[Run], None]] = []  # a slot is free, or an outcome stored
        self.concurrency = concurrency
        self.reserved = 0  # slots for the jobs of pops under way
        self.paused = False
        self._pausing = False  # and that isn't logged yet

    @property
    def free(self) -> int:
        """How many more runs may begin. Outcomes that wait to be stored are bounded, too."""
        free = min(self.concurrency - len(self.slots), 2 * self.concurrency - len(self.by_jid))
        return free - self.reserved

    async def take(self, most: int, *, whole: bool = False) -> int:
        """Wait for a free slot; reserve as many as are free for a pop of at most `most` jobs.

        Args:
            most: Maximum number of jobs.
            whole: The same number was asked for before, and no answer came: reserve no fewer, even
                while it is paused.

        Returns:
            The number; 0: look again.
        """
        if not whole and (self.paused or self.free < 1):
            await self._wait()
        while whole and self.free < most:
            await self._wait()
        count = most if whole else 0 if self.paused else max(0, min(most, self.free))
        self.reserved += count
        return count

    async def _wait(self) -> None:
        self.slot_freed.clear()
        await self.slot_freed.wait()

    def give_back(self, count: int) -> None:
        """End what `take` began: the pop has ended, and jobs that it brought start at once."""
        self.reserved -= count
        self.slot_freed.set()
        self._log_pause()

    def leave(self) -> None:
        """Let a poller that waits return."""
        self.slot_freed.set()

    def pause(self) -> None:
        """Reserve no more slots until `resume`. It is logged when no pop is under way."""
        if not self.paused:
            self.paused = self._pausing = True
            self._log_pause()

    def resume(self) -> None:
        """Reserve slots again."""
        if self.paused:
            self.paused = self._pausing = False
            self.slot_freed.set()
            log.info("worker.resumed", worker=self._worker)

    def _log_pause(self) -> None:
        if self._pausing and not self.reserved:
            self._pausing = False
            log.info("worker.paused", worker=self._worker, running=len(self.by_jid))

    def add(self, run: Run) -> Run | None:
        """Add a run, which takes a slot; return the run of its job that it replaces, if any."""
        former = self.by_jid.get(run.job.jid)
        self.by_jid[run.job.jid] = run
        self.slots.add(run)
        return former

    def free_slot(self, run: Run) -> None:
        """Free the slot of a run whose code has stopped."""
        self.slots.discard(run)
        self._signal_end(run)

    def remove(self, run: Run) -> None:
        """Remove a run; another run of its job that has replaced it stays."""
        if self.by_jid.get(run.job.jid) is run:
            del self.by_jid[run.job.jid]
        self.slots.discard(run)
        self._signal_end(run)

    def _signal_end(self, run: Run) -> None:
        self.slot_freed.set()
        for call in self.on_end:
            call(run)
