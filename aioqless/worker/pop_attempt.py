"""PopAttempt: one pop, which is sent again until Redis answers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from aioqless.client.job.decoding import JobFields, decode_row
from aioqless.errors import ScriptError
from aioqless.runtime.log import log
from aioqless.store import HeartbeatManyRow, PopManyRow, Store
from aioqless.worker.outage import NOT_NOW

LATE = 0.5  # seconds from a pop to its reply, after which its locks are renewed before jobs begin


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


class PopAttempt:
    """A pop that is sent until Redis answers, each time with the same request id.

    Jobs which an unanswered one locked are so returned by the next that gets through.
    """

    def __init__(self, store: Store, worker: str, request: str) -> None:
        self.count = 0  # how many jobs were asked for
        self.unanswered = False  # it was sent, and may have brought jobs
        self.sent_at = 0.0  # by time.monotonic
        self._store = store
        self._worker = worker
        self._request = request

    async def send(self, count: int, order: str, batch: Sequence[PopManyRow]) -> Popped:
        """Send it, first or again; an error leaves it unanswered.

        Args:
            count: Maximum number of jobs; the same each time.
            order: How the script goes through the queues.
            batch: The queues.
        """
        self.count, self.unanswered, self.sent_at = count, True, time.monotonic()
        rows, due, now = await self._store.pop_many(
            worker=self._worker, count=count, order=order, batch=batch, request=self._request
        )
        jobs = [decode_row(row, self._worker) for row in rows]
        if jobs:
            log.debug("poller.popped", jobs=len(jobs), asked=count)
        return Popped(jobs, len(rows) >= count, float(due or 0), float(now))

    async def without_lost(self, popped: Popped) -> Popped:
        """Return a reply without the jobs that others have by now, if it was late."""
        if time.monotonic() - self.sent_at <= LATE:
            return popped
        return popped._replace(jobs=await drop_lost(self._store, self._worker, popped.jobs))


async def drop_lost(store: Store, worker: str, jobs: list[JobFields]) -> list[JobFields]:
    """Renew the locks of jobs whose pop reply arrived late; return those still held.

    The connection was slow, or the loop was blocked. A job that another worker has taken over
    meanwhile would only run twice.
    """
    batch: list[HeartbeatManyRow] = [{"jid": job.jid, "fence": job.fence} for job in jobs]
    try:
        answers = await store.heartbeat_many(worker=worker, batch=batch)
    except NOT_NOW:  # unknown until Redis is back; then the lock renewer finds out
        return jobs
    held = []
    for job, answer in zip(jobs, answers, strict=True):
        if isinstance(answer, ScriptError):
            log.warning(
                "job.stale_pop_dropped",
                jid=job.jid,
                klass=job.klass,
                queue=job.queue,
                why=str(answer),
            )
        else:
            held.append(job)
    return held
