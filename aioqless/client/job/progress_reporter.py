"""Reports of progress on their way to Redis."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from redis import exceptions

from aioqless.log import log
from aioqless.store import Call, Store

PAUSE = 0.1


class ReportedJob(Protocol):
    """What is needed of the job whose progress is reported."""

    jid: str
    worker: str
    fence: int
    expires: float


class Reporter(Protocol):
    """Takes the progress of jobs."""

    def report(self, job: ReportedJob, share: float, message: str) -> None:
        """Report how much of a job is done, from 0 to 1. May be called in any thread."""


class ProgressReporter:
    """Owns the latest report of each job that isn't sent yet, and the task that sends them: at
    once, and the next after a pause."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._loop = asyncio.get_running_loop()
        self._latest: dict[str, tuple[ReportedJob, float, str]] = {}
        self._sending: asyncio.Task[None] | None = None

    def report(self, job: ReportedJob, share: float, message: str) -> None:
        """Send it soon. May be called in any thread."""
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            self._keep(job, share, message)
        else:
            self._loop.call_soon_threadsafe(self._keep, job, share, message)

    def _keep(self, job: ReportedJob, share: float, message: str) -> None:
        self._latest[job.jid] = job, share, message
        if self._sending is None:
            self._sending = self._loop.create_task(self._send(), name="aioqless progress reporter")

    async def _send(self) -> None:
        """Send what there is, until nothing came during a pause."""
        try:
            while self._latest:
                latest, self._latest = self._latest, {}
                jobs = [job for job, _, _ in latest.values()]
                answers = await self._answers([self._call(*each) for each in latest.values()])
                for job, answer in zip(jobs, answers, strict=True):
                    if isinstance(answer, Exception):
                        log.debug("job.progress_lost", jid=job.jid, error=str(answer))
                    else:
                        job.expires = max(job.expires, answer)
                await asyncio.sleep(PAUSE)
        finally:
            self._sending = None

    async def _answers(self, calls: list[Call]) -> list[Any]:
        """Nothing is sent a second time: the next report may get through."""
        try:
            return await self._store.pipeline(calls)
        except exceptions.RedisError as error:
            return [error] * len(calls)

    def _call(self, job: ReportedJob, share: float, message: str) -> Call:
        return self._store.heartbeat(
            jid=job.jid,
            worker=job.worker,
            fence=job.fence or None,
            progress=share,
            message=message,
        )
