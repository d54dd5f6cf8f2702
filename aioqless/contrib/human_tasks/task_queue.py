"""Desk: a queue, as people work on it."""

from __future__ import annotations

from typing import Any

from aioqless import validation
from aioqless.client import Client
from aioqless.client.job import Job
from aioqless.contrib.human_tasks.person import Person
from aioqless.contrib.human_tasks.reservation import Reservation, Terms
from aioqless.contrib.human_tasks.task_status import Fate, fate_of, had_by


class Desk:
    """A queue whose workers are people: each reserves one job at a time, for a limited time, under
    the terms of the desk.

    A job whose time runs out goes to whoever asks next, person or machine. That costs it no retry
    and never fails it. Several desks, and workers, may be on one queue."""

    def __init__(self, client: Client, queue: str, terms: Terms | None = None) -> None:
        self.queue = validation.checked("queue", queue)
        self.terms = terms or Terms()
        self.client = client

    async def reserve(
        self,
        person: Person | str,
        *,
        limit: float | None = None,
        again: bool = False,
        request: str | None = None,
    ) -> Reservation | None:
        """The next job for a person, for `limit` seconds or the desk's; None when there is none. A
        session that has one already is answered with that. What was handed over to the person comes
        first; what the person skipped only with `again`."""
        return (await self.ask(person, limit=limit, again=again, request=request))[0]

    async def ask(
        self,
        person: Person | str,
        *,
        limit: float | None = None,
        again: bool = False,
        request: str | None = None,
    ) -> tuple[Reservation | None, int]:
        """The same, and how many jobs were passed over since the person had skipped them."""
        person = Person.of(person)
        answer = await self.client.store.reserve(
            queue=self.queue,
            person=person.name,
            worker=person.worker,
            limit=self.terms.chosen(limit),
            again=int(again),
            request=person.request_id(request),
        )
        return self._reserved(person, answer), answer["skipped"]

    async def current(self, person: Person | str) -> Reservation | None:
        """What this session has reserved, if its time isn't over."""
        person = Person.of(person)
        return self._reserved(
            person, await self.client.store.reservation(queue=self.queue, worker=person.worker)
        )

    async def fate(self, person: Person | str, jid: str) -> Fate | None:
        """What became of a job that this session had; None for one that it never had."""
        person, job = Person.of(person), await self.client.jobs.get(jid)
        if job is None:
            return Fate("gone")
        return (
            fate_of(job, person, self.queue, await self.client.store.now())
            if had_by(job, person)
            else None
        )

    async def claimed(self, person: Person | str, jid: str, fence: int) -> Reservation | None:
        """What a session says that it reserved, for its verbs, each of which sees whether that is
        so; None when there is no such job."""
        job = await self.client.jobs.get(jid)
        return None if job is None else self._reservation(Person.of(person), job, 0, fence)

    async def counts(self) -> dict[str, Any]:
        """The queue's counts: {name, waiting, running, stalled, scheduled, depends, recurring,
        paused}."""
        return await self.client.queue(self.queue).counts()

    def _reserved(self, person: Person, answer: dict[str, Any]) -> Reservation | None:
        if answer["job"] is None:
            return None
        job = Job(self.client.services, answer["job"])
        return self._reservation(person, job, job.expires - answer["now"], job.fence)

    def _reservation(self, person: Person, job: Job, left: float, fence: int) -> Reservation:
        return Reservation(
            job, person, self.queue, fence, max(0.0, left), self.terms, self.client.store
        )

    def __repr__(self) -> str:
        return f"<Desk {self.queue!r}>"
