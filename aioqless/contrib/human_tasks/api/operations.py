"""What can be asked of the API, one function for each, and the table of them all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aioqless import validation
from aioqless.contrib.human_tasks.api.guard import Refused
from aioqless.contrib.human_tasks.api.shapes import (
    Ask,
    Counts,
    Done,
    Extend,
    Extended,
    Finish,
    HandOver,
    Held,
    Lot,
    Offer,
    Reject,
    task_of,
)
from aioqless.contrib.human_tasks.person import Person
from aioqless.contrib.human_tasks.reservation import Reservation
from aioqless.contrib.human_tasks.task_queue import Desk


@dataclass(frozen=True)
class Asked:
    """A request that has come through the door: by whom, of which desk, with which checked body;
    `key` is this attempt's own."""

    person: Person
    desk: Desk
    body: Any
    key: str | None
    query: Mapping[str, str]

    def request(self, verb: str, fence: int = 0) -> str | None:
        """The identity of an attempt, by which it may be repeated."""
        return None if self.key is None else f"{verb} {fence} {self.key}"


@dataclass(frozen=True)
class Operation:
    """One of the things that can be asked: how, what it takes and answers, and what is done."""

    method: str
    path: str
    summary: str
    answer: Any
    perform: Callable[[Asked], Awaitable[Any]]
    body: Any = None
    query: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.perform.__name__


async def counts(asked: Asked) -> Counts:
    found, terms = await asked.desk.counts(), asked.desk.terms
    reserved = found["running"] + found["stalled"]
    return Counts(
        asked.desk.queue, found["waiting"], reserved, found["paused"], terms.limit, terms.longest
    )


async def current(asked: Asked) -> Offer:
    reservation = await asked.desk.current(asked.person)
    return Offer(task_of(reservation) if reservation else None, 0)


async def reserve(asked: Asked) -> Offer:
    body: Ask = asked.body
    found, skipped = await asked.desk.ask(
        asked.person, limit=body.limit, again=body.again, request=asked.request("reserve")
    )
    return Offer(task_of(found) if found else None, skipped)


async def extend(asked: Asked) -> Extended:
    body: Extend = asked.body
    reservation = await _claimed(asked)
    await reservation.extend(body.limit, request=asked.request("extend", body.fence))
    return Extended(round(reservation.left, 3))


async def finish(asked: Asked) -> Done:
    body: Finish = asked.body
    return Done(
        await (await _claimed(asked)).finish(
            body.answer, request=asked.request("finish", body.fence)
        )
    )


async def skip(asked: Asked) -> Done:
    await (await _claimed(asked)).skip(request=asked.request("skip", asked.body.fence))
    return Done("waiting")


async def give_back(asked: Asked) -> Done:
    await (await _claimed(asked)).give_back(request=asked.request("give_back", asked.body.fence))
    return Done("waiting")


async def reject(asked: Asked) -> Done:
    body: Reject = asked.body
    await (await _claimed(asked)).fail(body.reason, request=asked.request("reject", body.fence))
    return Done("failed")


async def hand_over(asked: Asked) -> Done:
    body: HandOver = asked.body
    await (await _claimed(asked)).hand_over(
        body.to, body.limit, request=asked.request("hand_over", body.fence)
    )
    return Done("running")


async def fate(asked: Asked) -> Lot:
    jid = asked.query.get("jid", "")
    found = await asked.desk.fate(asked.person, validation.checked("jid", jid))
    if found is None:
        raise Refused(404, "unknown", "This session never had such a job.")
    return Lot(found.what, found.by and validation.readable(found.by))


async def _claimed(asked: Asked) -> Reservation:
    held: Held = asked.body
    reservation = await asked.desk.claimed(
        asked.person, validation.checked("jid", held.jid), held.fence
    )
    if reservation is None:
        raise Refused(404, "gone", "There is no such job any more.")
    return reservation


DESK = "/desks/{desk}"
OPERATIONS = (
    Operation("GET", DESK, "How much there is to do, and how long one has for it", Counts, counts),
    Operation(
        "GET",
        f"{DESK}/reservation",
        "What this session has reserved, if its time isn't over",
        Offer,
        current,
    ),
    Operation(
        "POST",
        f"{DESK}/reservation",
        "Reserve the next job; a session that has one is answered with that",
        Offer,
        reserve,
        Ask,
    ),
    Operation("POST", f"{DESK}/extend", "Have it longer", Extended, extend, Extend),
    Operation("POST", f"{DESK}/finish", "Be done with it, with an answer", Done, finish, Finish),
    Operation("POST", f"{DESK}/skip", "Leave it to others, behind the others", Done, skip, Held),
    Operation("POST", f"{DESK}/give-back", "Leave it where it was", Done, give_back, Held),
    Operation(
        "POST", f"{DESK}/reject", "Set it aside as failed, with the reason", Done, reject, Reject
    ),
    Operation("POST", f"{DESK}/hand-over", "Leave it to another person", Done, hand_over, HandOver),
    Operation(
        "GET",
        f"{DESK}/fate",
        "What became of a job that this session had",
        Lot,
        fate,
        query=("jid",),
    ),
)
