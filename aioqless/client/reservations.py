"""Reservations: jobs that people hold for a limited time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from aioqless.client.job import Job
from aioqless.client.job.backend import JobBackend
from aioqless.client.job.decoding import JobRecord, decode_record


@dataclass(frozen=True)
class Lock:
    """Identifies the run of a job that a worker, or a person's session, holds.

    Attributes:
        jid: Jid of the job.
        worker: Name of the worker or session.
        fence: Fencing token of the run.
    """

    jid: str
    worker: str
    fence: int


@dataclass(frozen=True)
class Reserved:
    """The result of reserving a job.

    Attributes:
        job: The job; None if there is none.
        left: Seconds until the reservation expires.
        skipped: Number of jobs that were passed over since the person skipped them.
    """

    job: Job | None
    left: float
    skipped: int


class Reservations:
    """Reserves jobs and changes reservations.

    A call with a `request` id is idempotent: repeated, it returns its first result. Calls with a
    lock raise LockLost if another worker holds the job, and WrongState if none does.
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
        """Lock the next job of a queue for a session of a person.

        A session that already holds a job of the queue gets that one.

        Args:
            queue: Name of the queue.
            person: Name of the person.
            worker: Name of the session.
            limit: Seconds until the reservation expires.
            include_skipped: Offer jobs that the person skipped, too.
            request: Request id.
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
        """Return what a session holds in a queue, if it has not expired.

        Args:
            queue: Name of the queue.
            worker: Name of the session.
        """
        return self._reserved(await self._store.reservation(queue=queue, worker=worker))

    async def extend(self, lock: Lock, limit: float, *, request: str | None = None) -> float:
        """Extend a reservation, and return when it expires, in seconds since 1970.

        Args:
            lock: The reservation.
            limit: Seconds from now until it expires.
            request: Request id.
        """
        return await self._store.extend(
            jid=lock.jid, worker=lock.worker, fence=lock.fence, limit=limit, request=request
        )

    async def hand_over(
        self, lock: Lock, to: str, limit: float, *, request: str | None = None
    ) -> None:
        """Pass a reservation to another person.

        Args:
            lock: The reservation.
            to: Name of the person.
            limit: Seconds in which that person must reserve it.
            request: Request id.
        """
        await self._store.hand_over(
            jid=lock.jid, worker=lock.worker, fence=lock.fence, to=to, limit=limit, request=request
        )

    async def skip(self, lock: Lock, person: str, *, request: str | None = None) -> None:
        """Release a job behind others of its priority, and no longer offer it to a person.

        Args:
            lock: The reservation.
            person: Name of the person.
            request: Request id.
        """
        await self._store.skip(
            jid=lock.jid, worker=lock.worker, fence=lock.fence, person=person, request=request
        )

    async def release(self, lock: Lock, *, request: str | None = None) -> None:
        """Release a job at its former place in the queue.

        Args:
            lock: The reservation.
            request: Request id.
        """
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
        """Complete a job with its changed data, or move it on to another queue.

        Args:
            lock: The reservation.
            job: The job.
            queue: The queue that it was reserved from.
            next: The queue to move it to.
            result: Seconds for which the result is kept, a space, and the encoded result.
            request: Request id.

        Returns:
            The state of the job.
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
        """Fail a job with its changed data.

        Args:
            lock: The reservation.
            job: The job.
            group: Failure group.
            message: Error message.
            request: Request id.
        """
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

    def _reserved(self, reply: _Reply) -> Reserved:
        if reply["job"] is None:
            return Reserved(None, 0.0, reply["skipped"])
        job: Job = Job(self._backend, decode_record(reply["job"]))
        return Reserved(job, max(0.0, job.expires - reply["now"]), reply["skipped"])


class _Reply(TypedDict):
    job: JobRecord | None
    now: float
    skipped: int
