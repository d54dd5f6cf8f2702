"""ProgressReporter: sends the progress of running jobs."""

from __future__ import annotations

import asyncio
from typing import Protocol

from redis import exceptions

from aioqless.client.job.decoding import JobFields
from aioqless.redis.batcher import Batcher
from aioqless.runtime.log import log
from aioqless.runtime.tasks import is_on_loop
from aioqless.store import Store, context_with

PAUSE = 0.1  # seconds between two reports of a job


class Reporter(Protocol):
    """Sends or records the progress of jobs."""

    def report(self, job: JobFields, share: float, message: str) -> None:
        """Report how much of a job is done. May be called in any thread.

        Args:
            job: The job.
            share: How much is done, from 0 to 1.
            message: What is being done.
        """


class ProgressReporter:
    """Sends the latest progress of each job: at once, then after a pause.

    Owns the latest progress of each job that isn't sent yet.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._loop = asyncio.get_running_loop()
        self._latest: dict[str, tuple[JobFields, float, str]] = {}
        self._batcher: Batcher[str, None] = Batcher(
            self._send,
            name="progress",
            max_items=1000,
            pause=PAUSE,
            context=context_with(None),
        )

    @property
    def is_idle(self) -> bool:
        """Whether all that was reported has been sent."""
        return self._batcher.is_idle

    def report(self, job: JobFields, share: float, message: str) -> None:
        """Send the progress of a job soon. May be called in any thread.

        Args:
            job: The job.
            share: How much is done, from 0 to 1.
            message: What is being done.
        """
        if is_on_loop(self._loop):
            self._keep(job, share, message)
        else:
            self._loop.call_soon_threadsafe(self._keep, job, share, message)

    def _keep(self, job: JobFields, share: float, message: str) -> None:
        if job.jid not in self._latest:
            self._batcher.submit(job.jid)
        self._latest[job.jid] = job, share, message

    async def _send(self, jids: list[str]) -> list[None]:
        latest = [self._latest.pop(jid) for jid in jids]
        for (job, _, _), answer in zip(latest, await self._call(latest), strict=True):
            if isinstance(answer, Exception):
                log.debug("job.progress_lost", jid=job.jid, error=str(answer))
            else:
                job.expires = max(job.expires, answer)
        return [None] * len(jids)

    async def _call(self, latest: list[tuple[JobFields, float, str]]) -> list[float | Exception]:
        """Return when each lock expires. What fails is not sent again, but with later progress."""
        calls = [
            self._store.heartbeat(
                jid=job.jid,
                worker=job.worker,
                fence=job.fence or None,
                progress=share,
                message=message,
            )
            for job, share, message in latest
        ]
        try:
            return await self._store.pipeline(calls)
        except exceptions.RedisError as error:
            return [error] * len(calls)
