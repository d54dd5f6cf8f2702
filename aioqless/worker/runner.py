"""Run jobs: start each in a task of its own, and take it from started to stored."""

from __future__ import annotations

import asyncio
from typing import Any, Self

import anyio

from aioqless.errors import LockLost, NoSuchJob, ScriptError, WrongState
from aioqless.handlers import Handlers
from aioqless.jobs import Job
from aioqless.log import bound, log
from aioqless.worker.finisher import Finisher
from aioqless.worker.outcome import Again, Complete, Failed, Outcome, Release, outcome_of
from aioqless.worker.perform import perform
from aioqless.worker.run import Reason, Run
from aioqless.worker.settings import Settings


class Runner:
    """Owns the table of running jobs and so the free slots. A run leaves the table only when Redis knows its outcome: until then its lock
    is kept alive. Leaving the block waits `grace` seconds for what runs, then stops it and hands it back."""

    def __init__(self, handlers: Handlers, finisher: Finisher, settings: Settings) -> None:
        self.running: dict[str, Run] = {}
        self.vacancy = asyncio.Event()  # set whenever a run has left the table
        self._handlers = handlers
        self._finisher = finisher
        self._settings = settings
        self._watchers: set[asyncio.Task[None]] = set()
        self._threads = anyio.CapacityLimiter(settings.threads)

    @property
    def free(self) -> int:
        return self._settings.concurrency - len(self.running)

    def start(self, job: Job, lock: float) -> None:
        """Begin a job whose lock lasts `lock` seconds from now."""
        now = asyncio.get_running_loop().time()
        run = Run(job, started=now, lock=lock, deadline=now + lock)
        self.running[job.jid] = run
        watcher = asyncio.create_task(self._see_through(run), name=f"aioqless {job.jid}")
        self._watchers.add(watcher)
        watcher.add_done_callback(self._watchers.discard)

    def stop(self, jid: str, reason: Reason) -> None:
        """Stop a run, if it is here."""
        if run := self.running.get(jid):
            run.stop(reason)

    async def _see_through(self, run: Run) -> None:
        """Take one job from started to stored."""
        try:
            with bound(**run.who):
                log.info("job.started")
                run.task = asyncio.create_task(self._perform(run), name=f"aioqless handler {run.job.jid}")
                await asyncio.wait([run.task])
                if outcome := outcome_of(run):
                    self._tell(run, outcome, await self._finisher.store(run, outcome))
                elif run.stopped_by == "lost":
                    log.warning("job.lock_lost", seconds=self._seconds(run))
        finally:
            if self.running.get(run.job.jid) is run:
                del self.running[run.job.jid]
            self.vacancy.set()

    async def _perform(self, run: Run) -> None:
        """The handler's own task, and the only one that is ever cancelled."""
        try:
            run.result = await perform(run.job, self._handlers, self._threads)
            run.data = run.job.changed_data()
        except (Exception, asyncio.CancelledError) as error:  # whatever a handler raises becomes an outcome
            run.error = error

    def _tell(self, run: Run, outcome: Outcome, reply: Any) -> None:
        match outcome, reply:
            case _, LockLost() | WrongState() | NoSuchJob():
                log.warning("job.lock_lost", seconds=self._seconds(run), why=str(reply))
            case _, ScriptError():
                log.error("job.refused", seconds=self._seconds(run), why=str(reply))
            case Complete(), "complete":
                log.info("job.completed", seconds=self._seconds(run))
            case Complete(next), state:
                log.info("job.advanced", seconds=self._seconds(run), to=next.queue if next else None, state=state)
            case Again(delay), remaining:
                log.info("job.retried", seconds=self._seconds(run), delay=delay, remaining=remaining)
            case Failed(group, message), _:
                log.warning("job.failed", seconds=self._seconds(run), group=group, message=message)
            case Release(), _:
                log.info("job.released", seconds=self._seconds(run))

    def _seconds(self, run: Run) -> float:
        return round(asyncio.get_running_loop().time() - run.started, 6)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, failed: type[BaseException] | None, *_: object) -> None:
        if self._watchers and failed is None:
            await asyncio.wait(self._watchers, timeout=self._settings.grace)
        for run in list(self.running.values()):
            run.stop("shutdown")
        if self._watchers:
            await asyncio.wait(self._watchers)
