"""Reservations: jobs that people hold for a limited time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aioqless.client.job import Job
from aioqless.client.job.backend import JobBackend
from aioqless.client.job.decoding import decode_record


@dataclass(frozen=True)
class Lock:
    """Names the run of a job that a worker, or a person's session, holds."""

    jid: str
    worker: str
    fence: int


@dataclass(frozen=True)
class Reserved:
    """A reply: the job if there is one, the seconds left, and how many jobs were passed over."""

    job: Job | None
    left: float
    skipped: int


class Reservations:
    """Reserves jobs and changes reservations.

    A call with a `request` id may be repeated: the second time it returns its first result. Calls
    with a lock raise LockLost if another worker holds the job, and WrongState if none does.
    """

    def __init__(self, backend: JobBackend) -> None:
        self._backend = backend
        self._store = backend.store

    async def reserve(
        self,
        queue: str,
        person: str,
        worker: str,
        limit: float,
        *,
        include_skipped: bool = False,
        request: str | None = None,
    ) -> Reserved:
        """Lock the next job of a queue for a session of a person, for `limit` seconds.

        A session that holds a job of the queue already gets that one.
        """
        reply = await self._store.reserve(
            queue=queue,
            person=person,
            worker=worker,
            limit=limit,
            again=int(include_skipped),
            request=request,
        )
        return self._reserved(reply)

    async def current(self, queue: str, worker: str) -> Reserved:
        """Return what a session holds in a queue, if it has not expired."""
        return self._reserved(await self._store.reservation(queue=queue, worker=worker))

    async def extend(self, lock: Lock, limit: float, *, request: str | None = None) -> float:
        """Let a reservation expire in `limit` seconds; return the time."""
        return await self._store.extend(
            jid=lock.jid, worker=lock.worker, fence=lock.fence, limit=limit, request=request
        )

    async def hand_over(
        self, lock: Lock, to: str, limit: float, *, request: str | None = None
    ) -> None:
        """Pass a reservation to another person, who has `limit` seconds to reserve it."""
        await self._store.hand_over(
            jid=lock.jid, worker=lock.worker, fence=lock.fence, to=to, limit=limit, request=request
        )

    async def skip(self, lock: Lock, person: str, *, request: str | None = None) -> None:
        """Release a job behind those of its priority, and offer it to this person no more."""
        await self._store.skip(
            jid=lock.jid, worker=lock.worker, fence=lock.fence, person=person, request=request
        )

    async def release(self, lock: Lock, *, request: str | None = None) -> None:
        """Release a job at its former place in the queue."""
        await self._store.release(
            jid=lock.jid, worker=lock.worker, fence=lock.fence, request=request
        )

    async def complete(
        self,
        lock: Lock,
        job: Job,
        queue: str,
        *,
        next: str | None = None,
        result: str | None = None,
        request: str | None = None,
    ) -> str:
        """Complete a job with its changed data, or move it to the queue `next`; return its state.

        Args:
            lock: The reservation.
            job: The job.
            queue: The queue that it was reserved from.
            next: The queue to move it to.
            result: Seconds for which the result is kept, a space, and the encoded result.
            request: Id of a repeatable call.
        """
        return await self._store.complete(
            jid=lock.jid,
            worker=lock.worker,
            fence=lock.fence,
            queue=queue,
            data=job.changed_data(),
            next=next,
            result=result,
            request=request,
        )

    async def fail(
        self, lock: Lock, job: Job, group: str, message: str, *, request: str | None = None
    ) -> None:
        """Fail a job with its changed data."""
        await self._store.fail(
            jid=lock.jid,
            worker=lock.worker,
            fence=lock.fence,
            group=group,
            message=message,
            data=job.changed_data(),
            request=request,
        )

    async def now(self) -> float:
        """Return the time by the clock of reservations, in seconds since 1970."""
        return await self._store.now()

    def _reserved(self, reply: dict[str, Any]) -> Reserved:
        if reply["job"] is None:
            return Reserved(None, 0.0, reply["skipped"])
        job = Job(self._backend, decode_record(reply["job"]))
        return Reserved(job, max(0.0, job.expires - reply["now"]), reply["skipped"])
