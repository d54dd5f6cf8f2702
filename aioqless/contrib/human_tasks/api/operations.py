"""The operations of the API, one function each, and the table of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aioqless import validation
from aioqless.contrib.http.identity import matches
from aioqless.contrib.http.json_api import JobStatus, RequestRefused
from aioqless.contrib.http.router import ApiRequest, Operation
from aioqless.contrib.human_tasks.api.schemas import (
    Counts,
    Extend,
    Extended,
    Finish,
    HandOver,
    Offer,
    Reject,
    ReservationKey,
    Reserve,
    StatusQuery,
    TaskStatus,
    task_of,
)
from aioqless.contrib.human_tasks.person import Person
from aioqless.contrib.human_tasks.reservation import Reservation
from aioqless.contrib.human_tasks.task_queue import TaskQueue


@dataclass(frozen=True)
class TaskRequest:
    """A validated request; `key` is its idempotency key."""

    person: Person
    tasks: TaskQueue
    body: Any
    key: str | None
    query: Any

    @classmethod
    def of(cls, queues: Mapping[str, TaskQueue], request: ApiRequest) -> TaskRequest:
        """Return what a request is about; raise RequestRefused for a queue of others."""
        name = request.path["queue"]
        tasks = queues.get(name)
        if tasks is None:
            raise RequestRefused(404, "queue", "There is no such task queue.")
        if not matches(name, request.identity.may_reserve):
            raise RequestRefused(403, "queue", f"You may not work on the task queue {name}.")
        # stands for one tab of a browser in the names of workers
        session = _digest(f"{request.nonce} {request.tab}")
        person = Person(request.identity.name, session)
        return cls(person, tasks, request.body, request.key, request.query)

    def attempt(self, verb: str, fence: int = 0) -> str | None:
        """Return the name of this attempt, by which it may be repeated."""
        return None if self.key is None else f"{verb} {fence} {_digest(self.key)}"


async def counts(request: TaskRequest) -> Counts:
    """Count the jobs of the queue."""
    found, policy = await request.tasks.counts(), request.tasks.policy
    reserved = found.running + found.stalled
    return Counts(
        request.tasks.queue,
        found.waiting,
        reserved,
        found.paused,
        policy.limit,
        policy.max_limit,
    )


async def current(request: TaskRequest) -> Offer:
    """Return what this session has reserved."""
    reservation = await request.tasks.current(request.person)
    return Offer(task_of(reservation) if reservation else None, 0)


async def reserve(request: TaskRequest) -> Offer:
    """Reserve the next job."""
    body: Reserve = request.body
    found, skipped = await request.tasks.reserve_counting_skipped(
        request.person, limit=body.limit, again=body.again, request=request.attempt("reserve")
    )
    return Offer(task_of(found) if found else None, skipped)


async def extend(request: TaskRequest) -> Extended:
    """Extend a reservation."""
    body: Extend = request.body
    reservation = await _claim(request)
    await reservation.extend(body.limit, request=request.attempt("extend", body.fence))
    return Extended(round(reservation.left, 3))


async def finish(request: TaskRequest) -> JobStatus:
    """Finish a job with an answer."""
    body: Finish = request.body
    return JobStatus(
        await (await _claim(request)).finish(
            body.answer, request=request.attempt("finish", body.fence)
        )
    )


async def skip(request: TaskRequest) -> JobStatus:
    """Skip a job."""
    await (await _claim(request)).skip(request=request.attempt("skip", request.body.fence))
    return JobStatus("waiting")


async def give_back(request: TaskRequest) -> JobStatus:
    """Release a job."""
    await (await _claim(request)).give_back(
        request=request.attempt("give_back", request.body.fence)
    )
    return JobStatus("waiting")


async def reject(request: TaskRequest) -> JobStatus:
    """Fail a job with a reason."""
    body: Reject = request.body
    await (await _claim(request)).fail(body.reason, request=request.attempt("reject", body.fence))
    return JobStatus("failed")


async def hand_over(request: TaskRequest) -> JobStatus:
    """Pass a job to another person."""
    body: HandOver = request.body
    await (await _claim(request)).hand_over(
        body.to, body.limit, request=request.attempt("hand_over", body.fence)
    )
    return JobStatus("running")


async def status(request: TaskRequest) -> TaskStatus:
    """Return the status of a job that this session has or had."""
    query: StatusQuery = request.query
    found = await request.tasks.status(request.person, validation.check_name("jid", query.jid))
    if found is None:
        raise RequestRefused(404, "unknown", "This session never reserved this job.")
    return TaskStatus(found.what, found.by and validation.to_text(found.by))


async def _claim(request: TaskRequest) -> Reservation:
    key: ReservationKey = request.body
    reservation = await request.tasks.claim(
        request.person, validation.check_name("jid", key.jid), key.fence
    )
    if reservation is None:
        raise RequestRefused(404, "gone", "The job no longer exists.")
    return reservation


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


QUEUE = "/tasks/{queue}"
OPERATIONS: tuple[Operation[TaskRequest], ...] = (
    Operation(
        method="GET", path=QUEUE, name="count_tasks",
        summary="Numbers of waiting and reserved jobs, and the limit", answer=Counts,
        perform=counts,
    ),
    Operation(
        method="GET", path=f"{QUEUE}/reservation", name="current_task",
        summary="The reservation of this session, unless it has expired", answer=Offer,
        perform=current,
    ),
    Operation(
        method="POST", path=f"{QUEUE}/reservation", name="reserve_task",
        summary="Reserve the next job, or return the session's reservation", answer=Offer,
        perform=reserve, body=Reserve,
    ),
    Operation(
        method="POST", path=f"{QUEUE}/extend", name="extend_task", summary="Extend the reservation",
        answer=Extended, perform=extend, body=Extend,
    ),
    Operation(
        method="POST", path=f"{QUEUE}/finish", name="finish_task",
        summary="Finish the job with an answer", answer=JobStatus, perform=finish, body=Finish,
    ),
    Operation(
        method="POST", path=f"{QUEUE}/skip", name="skip_task",
        summary="Skip the job: it goes behind all others of its priority", answer=JobStatus,
        perform=skip, body=ReservationKey,
    ),
    Operation(
        method="POST", path=f"{QUEUE}/give-back", name="give_back_task",
        summary="Release the job to its place in the queue", answer=JobStatus, perform=give_back,
        body=ReservationKey,
    ),
    Operation(
        method="POST", path=f"{QUEUE}/reject", name="reject_task",
        summary="Fail the job with a reason", answer=JobStatus, perform=reject, body=Reject,
    ),
    Operation(
        method="POST", path=f"{QUEUE}/hand-over", name="hand_over_task",
        summary="Hand the job over to another person", answer=JobStatus, perform=hand_over,
        body=HandOver,
    ),
    Operation(
        method="GET", path=f"{QUEUE}/status", name="task_status",
        summary="The status of a job that this session has or had", answer=TaskStatus,
        perform=status, query=StatusQuery,
    ),
)  # fmt: skip
