"""A job that is reserved for a person, and what the person may do with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from aioqless import validation
from aioqless.client import json_data
from aioqless.client.job import Job
from aioqless.contrib.human_tasks.person import Person
from aioqless.errors import InvalidData
from aioqless.store import ScriptStore


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What holds for the reservations of a desk: seconds that they last where nobody says, and at
    most; the queue where jobs go when a person is done with them, and under which name their data
    has the answer then; for how many seconds an answer is kept else."""

    limit: float = 300
    longest: float = 3600
    next: str | None = None
    answer: str = "answer"
    keep: int = 604_800

    def __post_init__(self) -> None:
        validation.checked_number("limit", self.limit, least=0.001)
        validation.checked_number("longest", self.longest, least=self.limit)
        if self.longest > 86_400:
            raise ValueError(f"longest {self.longest!r} must be at most 86400 seconds, a day")
        validation.checked("answer", self.answer)
        if self.next is not None:
            validation.checked("next", self.next)
        if (
            validation.checked_number("keep", self.keep, least=1) != int(self.keep)
            or self.keep > 9_999_999_999
        ):
            raise ValueError(
                f"keep {self.keep!r} must be a whole number of seconds, at most 9999999999"
            )

    def chosen(self, limit: float | None) -> float:
        """The seconds that somebody asked for, or the usual, and no more than are allowed. Raises
        ValueError for none at all."""
        return (
            self.limit
            if limit is None
            else min(validation.checked_number("limit", limit, least=0.001), self.longest)
        )


@dataclass
class Reservation:
    """A job that is a person's until it `expires`, in seconds since 1970 by Redis' clock, of which
    `left` remained when it was read.

    Each verb raises LockLost when somebody else has the job by now, and WrongState when nobody has.
    What ran out is still this person's until somebody takes it. With a `request`, a text that is
    this attempt's alone, a verb may be repeated: the second time it answers what it answered first.
    """

    job: Job
    person: Person
    queue: str
    fence: int
    left: float
    terms: Terms = field(repr=False)
    store: ScriptStore = field(repr=False)

    @property
    def expires(self) -> float:
        return self.job.expires

    async def extend(self, limit: float | None = None, *, request: str | None = None) -> float:
        """Have it for so many seconds from now, or for the desk's limit; returns when it then
        expires. Repeated, it doesn't begin anew."""
        seconds = self.terms.chosen(limit)
        expires: float = await self._do("extend", request, limit=seconds)
        self.job.expires = expires
        self.left = (
            seconds if request is None else max(0.0, expires - await self.store.now())
        )  # it may be an earlier answer
        return expires

    async def hand_over(
        self, to: str, limit: float | None = None, *, request: str | None = None
    ) -> None:
        """Leave it to another person, who gets it with the next `reserve`. It waits for that for so
        many seconds, then it is anybody's."""
        other = Person(to)
        if other.name == self.person.name:
            raise ValueError(f"{to!r} has it already")
        await self._do("hand_over", request, to=other.worker, limit=self.terms.chosen(limit))

    async def skip(self, *, request: str | None = None) -> None:
        """Leave it to others: it goes behind those of its priority, and isn't offered to this
        person again unless asked for."""
        await self._do("skip", request, person=self.person.name)

    async def give_back(self, *, request: str | None = None) -> None:
        """Leave it where it was, for whoever comes next."""
        await self._do("release", request)

    async def finish(self, answer: Any, *, request: str | None = None) -> str:
        """Be done with it; returns the job's state.

        Where the desk has a `next` queue, the job goes there, and its data, which must be an
        object, has the answer. Else the job is complete, and the answer is its result. Raises
        InvalidData for an answer that isn't JSON or too large, or data without a place."""
        text = b"false" if answer is False else json_data.encoded(answer, self.job.max_data)
        more: dict[str, Any] = {}
        if self.terms.next is None:
            more["result"] = b"%d %s" % (self.terms.keep, self.job.encoded_result(text))
        else:
            if not isinstance(self.job.data, dict):
                raise InvalidData(
                    f"the data of job {self.job.jid} is no object, so it has no place for an answer under {self.terms.answer!r}"
                )
            self.job.data[self.terms.answer] = answer
            more["next"] = self.terms.next
        state: str = await self._do(
            "complete", request, queue=self.queue, data=self.job.changed_data(), **more
        )
        return state

    async def fail(
        self, reason: str, group: str | None = None, *, request: str | None = None
    ) -> None:
        """Set it aside as failed, in the group `<queue>-rejected` or another, with the reason."""
        group = validation.checked("group", group or f"{self.queue}-rejected")
        await self._do("fail", request, group=group, message=reason, data=self.job.changed_data())

    async def _do(self, command: str, request: str | None, **arguments: Any) -> Any:
        held = {"jid": self.job.jid, "worker": self.person.worker, "fence": self.fence}
        return await self.store.call(
            command, None, {**held, **arguments, "request": self.person.request_id(request)}
        )
