"""A job that a person holds, and what the person can do with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypedDict

from aioqless import validation
from aioqless.client import Client, job_data
from aioqless.client.job import Job, JobRun
from aioqless.contrib.human_tasks.generated_commands import HumanTasksCommands
from aioqless.contrib.human_tasks.person import Person
from aioqless.errors import InvalidData
from aioqless.validation import Duration, Seconds

DAY = 86_400
MAX_TTL = 9_999_999_999


@dataclass(frozen=True, kw_only=True)
class ReservationPolicy:
    """What holds for all reservations of a task queue.

    Args:
        limit: Seconds that a reservation lasts by default.
        max_limit: The maximum that a person can ask for, at most a day.
        next: The queue that finished jobs move to; without one they are complete.
        answer: The key of the answer in the data of jobs that move to `next`.
        result_ttl: Seconds for which the answer of a complete job is kept.

    Raises:
        ValueError: An invalid value.
    """

    limit: Duration = Duration(300, least=0.001)
    max_limit: Duration = Duration(3600)
    next: str | None = None
    answer: str = "answer"
    result_ttl: Duration = Duration(604_800, least=1)

    def __post_init__(self) -> None:
        validation.check_number("max_limit", self.max_limit, least=self.limit)
        if self.max_limit > DAY:
            raise ValueError(f"max_limit {self.max_limit!r} must be at most {DAY} seconds, a day")
        validation.check_name("answer", self.answer)
        if self.next is not None:
            validation.check_name("next", self.next)
        if self.result_ttl % 1 or self.result_ttl > MAX_TTL:
            raise ValueError(
                f"result_ttl {self.result_ttl!r} must be an integer number of seconds, at most "
                f"{MAX_TTL}"
            )

    def effective_limit(self, limit: Seconds | None) -> float:
        """Return the limit for a reservation, in seconds; raise ValueError for 0 or less."""
        if limit is None:
            return self.limit
        return min(validation.check_seconds("limit", limit, least=0.001), self.max_limit)


class _Lock(TypedDict):
    jid: str
    worker: str
    fence: int


@dataclass
class Reservation:
    """A job that a person holds until it `expires`, in seconds since 1970 by Redis' clock.

    `left` is the number of seconds that remained when it was read. Methods raise LockLost if
    another person or worker holds the job by now, and WrongState if it is not reserved. An expired
    reservation remains valid until another one takes the job. A method with a `request`, a string
    that names this attempt, may be repeated: the second time it returns its first result.
    """

    run: JobRun = field(repr=False)
    person: Person
    queue: str
    fence: int
    left: float
    policy: ReservationPolicy = field(repr=False)
    client: Client = field(repr=False)
    job: Job = field(init=False)

    def __post_init__(self) -> None:
        self.job = Job(self.run)

    @property
    def expires(self) -> float:
        """When the reservation expires."""
        return self.job.expires

    async def extend(self, limit: Seconds | None = None, *, request: str | None = None) -> float:
        """Let the reservation expire in `limit` seconds, or the policy's; return the time.

        Args:
            limit: Seconds from now; default: the policy's limit.
            request: Names this attempt; a repeated request does not extend it again.
        """
        seconds = self.policy.effective_limit(limit)
        expires = await self._commands.extend(
            **self._lock, limit=seconds, request=self.person.request_id(request)
        )
        self.run.renew_lock(expires)
        self.left = seconds
        if request is not None:  # the reply may be that of the first attempt
            self.left = max(0.0, expires - await self.client.internals.store.now())
        return expires

    async def hand_over(
        self, to: str, limit: Seconds | None = None, *, request: str | None = None
    ) -> None:
        """Pass the job to another person, who gets it with the next `reserve`.

        Args:
            to: Name of the other person.
            limit: Seconds in which that person must reserve it; later anyone gets it.
            request: Names this attempt, so that it may be repeated.

        Raises:
            ValueError: That person has the reservation already.
        """
        other = Person(to)
        if other.name == self.person.name:
            raise ValueError(f"{to!r} can't hand the job over to the same person")
        seconds = self.policy.effective_limit(limit)
        await self._commands.hand_over(
            **self._lock, to=other.worker, limit=seconds, request=self.person.request_id(request)
        )

    async def skip(self, *, request: str | None = None) -> None:
        """Release the job behind those of its priority; this person is not offered it again.

        Args:
            request: Names this attempt, so that it may be repeated.
        """
        await self._commands.skip(
            **self._lock, person=self.person.name, request=self.person.request_id(request)
        )

    async def give_back(self, *, request: str | None = None) -> None:
        """Release the job at its former place in the queue.

        Args:
            request: Names this attempt, so that it may be repeated.
        """
        await self.client.internals.store.release(
            **self._lock, request=self.person.request_id(request)
        )

    async def finish(self, answer: Any, *, request: str | None = None) -> str:
        """Finish the job with an answer, which is any JSON; return the job's state.

        If the policy has a `next` queue, the job moves there with the answer in its data, which
        must be an object. Otherwise the job is complete, and the answer is its result.

        Args:
            answer: Any JSON.
            request: Names this attempt, so that it may be repeated.

        Raises:
            InvalidData: An answer that is not JSON or too large, or data that is no object.
        """
        text = b"false" if answer is False else job_data.encode(answer, self.run.max_data)
        result = durable = None
        if self.policy.next is None:
            stored = self.run.encode_result(text).decode("utf-8", "surrogateescape")
            result, durable = f"{self.policy.result_ttl} {stored}", f"1 {stored}"
        elif not isinstance(self.job.data, dict):
            raise InvalidData(
                f"the data of job {self.job.jid} is no object, so it has no place for an answer "
                f"under {self.policy.answer!r}"
            )
        else:
            self.job.data[self.policy.answer] = answer
        return await self.client.internals.store.complete(
            **self._lock,
            queue=self.queue,
            **self.run.changes,
            next=self.policy.next,
            result=result,
            durable=durable,
            request=self.person.request_id(request),
        )

    async def fail(
        self, reason: str, group: str | None = None, *, request: str | None = None
    ) -> None:
        """Fail the job.

        Args:
            reason: Why; stored with the failure.
            group: Failure group; default: `<queue>-rejected`.
            request: Names this attempt, so that it may be repeated.
        """
        group = validation.check_name("group", group or f"{self.queue}-rejected")
        await self.client.internals.store.fail(
            **self._lock,
            group=group,
            message=validation.limit_message(reason),
            **self.run.changes,
            request=self.person.request_id(request),
        )

    @property
    def _commands(self) -> HumanTasksCommands:
        return HumanTasksCommands(self.client.internals.store)

    @property
    def _lock(self) -> _Lock:
        return {"jid": self.job.jid, "worker": self.person.worker, "fence": self.fence}
