"""TaskQueue: a queue that people work on."""

from __future__ import annotations

from typing import TypedDict

from aioqless import validation
from aioqless.client import Client
from aioqless.client.job import JobRun
from aioqless.client.job.decoding import JobFields, decode_record
from aioqless.client.queue_statistics import QueueCounts
from aioqless.contrib.human_tasks.generated_commands import HumanTasksCommands
from aioqless.contrib.human_tasks.person import Person
from aioqless.contrib.human_tasks.reservation import Reservation, ReservationPolicy
from aioqless.contrib.human_tasks.task_status import TaskStatus, status_of, was_held_by
from aioqless.store import Json
from aioqless.validation import Seconds


class _Reserved(TypedDict):
    job: Json | None
    now: float
    skipped: int


class TaskQueue:
    """A queue whose workers are people: each session reserves one job, for a limited time.

    A job whose reservation has expired goes to the next caller, person or machine. That uses
    no retry and never fails the job. Several task queues, and workers, may share a queue.

    Args:
        client: A connected client.
        queue: The name of the queue.
        policy: Limits of reservations, and what finished jobs become.
    """

    def __init__(self, client: Client, queue: str, policy: ReservationPolicy | None = None) -> None:
        self.queue = validation.check_name("queue", queue)
        self.policy = policy or ReservationPolicy()
        self.client = client

    async def reserve(
        self,
        person: Person | str,
        *,
        limit: Seconds | None = None,
        again: bool = False,
        request: str | None = None,
    ) -> Reservation | None:
        """Reserve the next job for a person; None when there is none.

        A session that holds a job already gets that one. Jobs that were handed over to the person
        come first.

        Args:
            person: The person, or the name of one.
            limit: Seconds until the reservation expires; default: the policy's.
            again: Offer jobs that the person has skipped, too.
            request: Names this attempt, so that it may be repeated.
        """
        found, _ = await self.reserve_counting_skipped(
            person, limit=limit, again=again, request=request
        )
        return found

    async def reserve_counting_skipped(
        self,
        person: Person | str,
        *,
        limit: Seconds | None = None,
        again: bool = False,
        request: str | None = None,
    ) -> tuple[Reservation | None, int]:
        """Reserve, and return how many jobs were passed over since the person had skipped them.

        The arguments are those of `reserve`.
        """
        person = Person.of(person)
        reply: _Reserved = await HumanTasksCommands(self.client.internals.store).reserve(
            queue=self.queue,
            person=person.name,
            worker=person.worker,
            limit=self.policy.effective_limit(limit),
            again=int(again),
            request=person.request_id(request),
        )
        return self._reserved(person, reply), reply["skipped"]

    async def current(self, person: Person | str) -> Reservation | None:
        """Return what this session has reserved, if it has not expired.

        Args:
            person: A person, or the name of one.
        """
        person = Person.of(person)
        reply: _Reserved = await HumanTasksCommands(self.client.internals.store).reservation(
            queue=self.queue, worker=person.worker
        )
        return self._reserved(person, reply)

    async def status(self, person: Person | str, jid: str) -> TaskStatus | None:
        """Return what became of a job that this session held; None if it never held it.

        Args:
            person: A person, or the name of one.
            jid: Id of the job.
        """
        person, job = Person.of(person), await self.client.jobs.get(jid)
        if job is None:
            return TaskStatus("gone")
        if not was_held_by(job, person):
            return None
        return status_of(job, person, self.queue, await self.client.internals.store.now())

    async def claim(self, person: Person | str, jid: str, fence: int) -> Reservation | None:
        """Return a reservation that a session claims to have; None when there is no such job.

        Each method of the reservation verifies the claim.

        Args:
            person: A person, or the name of one.
            jid: Id of the job.
            fence: Fencing token of the reservation.
        """
        record = await self.client.internals.store.get(jid=jid)
        if record is None:
            return None
        return self._reservation(Person.of(person), decode_record(record), 0, fence)

    async def counts(self) -> QueueCounts:
        """Return the queue's counts, as `client.queue(name).counts()` does."""
        return await self.client.queue(self.queue).counts()

    def _reserved(self, person: Person, reply: _Reserved) -> Reservation | None:
        if reply["job"] is None:
            return None
        job = decode_record(reply["job"])
        left = max(0.0, job.expires - reply["now"])
        return self._reservation(person, job, left, job.fence)

    def _reservation(self, person: Person, job: JobFields, left: float, fence: int) -> Reservation:
        run = JobRun(self.client.internals.backend, job)
        return Reservation(run, person, self.queue, fence, left, self.policy, self.client)

    def __repr__(self) -> str:
        return f"<TaskQueue {self.queue!r}>"
