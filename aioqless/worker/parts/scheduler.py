"""Declare what handlers do on schedule and on failures, and put recurring jobs that are due."""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from collections.abc import Callable, Iterable
from typing import NotRequired, TypedDict

from aioqless.client import Client
from aioqless.client.new_job import NewJob, encode_branch, encode_job
from aioqless.client.put_options import CheckedOptions
from aioqless.client.recurring.cron import CLOCK_TOLERANCE, Cron, right_tick
from aioqless.client.recurring.schedule import Schedule
from aioqless.errors import QueueFull
from aioqless.handlers import Handler
from aioqless.runtime.log import log
from aioqless.runtime.tasks import wait_for_event
from aioqless.store import Call, Store, TickRow
from aioqless.worker.context import NOT_NOW, WorkerContext

LONGEST_PAUSE = 15.0  # Redis' clock may have been set, its contents or a message lost
SHORTEST_PAUSE = 0.001
PAUSE_WHEN_FULL = 5.0
MOST_PER_TICK = 100
REVIEW_PERIOD = 300.0  # of a search for schedules that stand still since Redis' clock was ahead
MOST_JIDS_PER_CALL = 1000


class DueTemplate(TypedDict):
    """A recurring job with a cron expression that is due, as `tick` returns it."""

    jid: str
    cron: str
    timezone: str
    tick: float
    backlog: int | None
    until: float | None


class MovedTemplate(TypedDict):
    """A recurring job with an interval that stood still, as `tick` returns it."""

    jid: str
    former: float
    next: float


class TickAnswer(TypedDict):
    """What `tick` returns."""

    made: list[str]  # the jids of the instances that were put, empty where another worker was first
    due: list[DueTemplate]
    next: float | None
    now: float
    lost: NotRequired[bool]
    later: NotRequired[list[DueTemplate]]
    moved: NotRequired[list[MovedTemplate]]
    page: NotRequired[int | None]


class Declarations:
    """The recurring jobs and the branches that the handlers of a worker declare.

    Args:
        client: The client that stores them.
        handlers: The handlers.
        jid_of: Returns the jid of a klass' recurring job, or None if it isn't in the client's
            namespace; default: the klass.

    Raises:
        ValueError: The options of a recurring job are out of range.
        TypeError: An option is of the wrong type.
        InvalidData: The data of a recurring job can't be stored.
    """

    def __init__(
        self,
        client: Client,
        handlers: Iterable[Handler],
        jid_of: Callable[[str], str | None] = str,
    ) -> None:
        handlers = list(handlers)
        branches = {
            klass: each.on_failure and encode_branch(each.on_failure, client.max_data, client.codec)
            for each in handlers
            for klass in (each.klass, *each.aliases)
        }
        self.branches = {klass: job for klass, job in branches.items() if job}
        self._without_branch = [klass for klass, job in branches.items() if not job]
        jids = {klass: jid for klass in branches if (jid := jid_of(klass)) is not None}
        # By klass: the schedule, and the other arguments that declare a recurring job.
        self._declared: dict[str, tuple[Schedule, CheckedOptions]] = {}
        for each in handlers:
            if (recurrence := each.recurrence) and each.klass in jids:
                new = NewJob(each, recurrence.data, jid=jids[each.klass])
                arguments = {
                    **encode_job(new, client.max_data, client.codec),
                    **recurrence.limits,
                    "queue": new.choose_queue(None),
                }
                self._declared[each.klass] = recurrence.schedule, arguments
        self._others = [jid for klass, jid in jids.items() if klass not in self._declared]

    async def reconcile(self, store: Store) -> str | None:
        """Create or change in Redis what the handlers declare: recurring jobs and branches.

        A recurring job whose handler is here and no longer has a schedule is removed. One that no
        handler here claims is another program's, or another version's, and stays.

        Returns:
            The generation, by which `tick` finds out whether Redis has lost what was declared; None
            when nothing is declared.
        """
        generation: str | None = None
        if self._declared or self.branches:
            generation = await store.declare_begin(id=secrets.token_hex(8))
        for klass, job in self.branches.items():
            await store.on_failure_declare(klass=klass, job=job)
        for start in range(0, len(self._without_branch), MOST_JIDS_PER_CALL):
            others = self._without_branch[start : start + MOST_JIDS_PER_CALL]
            await store.on_failure_off(klasses=others)
        now = await store.now()
        for klass, (schedule, arguments) in self._declared.items():
            declare: Callable[..., Call[str]] = store.declare_interval
            if isinstance(schedule, Cron):
                declare = store.declare_cron
            done = await declare(**schedule.arguments, next=schedule.next(now), **arguments)
            log.info("recurring.declared", recurring=klass, done=done)
        for start in range(0, len(self._others), MOST_JIDS_PER_CALL):
            others = self._others[start : start + MOST_JIDS_PER_CALL]
            for jid in await store.declare_off(jids=others):
                log.info("recurring.dropped", recurring=jid)
        return generation


class Scheduler:
    """Owns the timer of recurring jobs with a cron expression.

    Every worker of a namespace has one: all compute the same ticks, and the script lets the first
    put the job.
    """

    def __init__(self, context: WorkerContext, declarations: Declarations) -> None:
        self.reconciled = False  # what the handlers declare is in Redis
        self.caught_up = False  # what was due at the start is put, or can't be now
        self.declared = asyncio.Event()  # failures have their branches, or the worker stops
        if not declarations.branches:
            self.declared.set()
        self._lifecycle = context.lifecycle
        self._lifecycle.on_change.append(self._note_change)
        self._generation: str | None = None  # of Redis' contents at the declaration
        self._store = context.store
        self._declarations = declarations
        self._outage = context.outage
        self._woken = asyncio.Event()
        self._logged: set[tuple[str, str]] = set()
        self._reviewed = -math.inf  # when, by the monotonic clock
        self._redis_time = 0.0  # at the latest tick

    def wake(self) -> None:
        """Look again: a tick may be due earlier than expected."""
        self._woken.set()

    def _note_change(self) -> None:
        if self._lifecycle.stopping:
            self.declared.set()

    async def run(self) -> None:
        """Declare recurring jobs, then tick until canceled."""
        while True:
            self._woken.clear()
            pause = await self._try_tick()
            await wait_for_event(self._woken, pause)

    async def _try_tick(self) -> float:
        """Tick; return the seconds until the next attempt."""
        asked = time.monotonic()
        try:
            if not self.reconciled:
                self._generation = await self._declarations.reconcile(self._store)
                self.reconciled = True
            self.declared.set()
            pause = await self._tick()
        except NOT_NOW as error:
            return self._outage.record_failure(error, asked)
        except QueueFull as full:  # which branches are not
            self.declared.set()
            log.warning("recurring.blocked", error=str(full))
            self.caught_up = True
            return PAUSE_WHEN_FULL
        self._outage.record_success()
        self.caught_up = True
        return pause

    async def _tick(self) -> float:
        """Put what is due; return the seconds until more will be."""
        rows: list[TickRow] = []
        invalid = 0
        page = 0 if time.monotonic() >= self._reviewed + REVIEW_PERIOD else None
        while True:
            answer: TickAnswer = await self._store.tick(
                offset=invalid, batch=rows, generation=self._generation, page=page
            )
            if page == 0:
                self._reviewed = time.monotonic()
            page = answer.get("page")
            if answer["now"] < self._redis_time - CLOCK_TOLERANCE:
                page = 0
            self._redis_time = answer["now"]
            self._log_put(rows, answer)
            if answer.get("lost") and self.reconciled:
                why = "Redis was emptied, or restored from an older state: declaring again"
                log.warning("recurring.lost", why=why)
                self.reconciled = False
            moves = self._moves(answer)
            if not (answer["due"] or moves or page is not None):
                break
            rows = []
            for due in answer["due"]:
                try:
                    rows += due_instances(due, answer["now"])
                except ValueError as wrong:  # here at least: another may know the time zone
                    invalid += 1
                    self._log_invalid(due["jid"], str(wrong))
            rows = rows[:MOST_PER_TICK] + moves
        if not self.reconciled:
            return SHORTEST_PAUSE
        if answer["next"] is None:
            return LONGEST_PAUSE
        return min(max(float(answer["next"] - answer["now"]), SHORTEST_PAUSE), LONGEST_PAUSE)

    def _moves(self, answer: TickAnswer) -> list[TickRow]:
        """Return the rows that move schedules which stand still, and log all that move."""
        rows: list[TickRow] = []
        for each in answer.get("later", ()):
            if due := right_tick(each["cron"], each["timezone"], each["tick"], answer["now"]):
                rows.append({"jid": each["jid"], "tick": each["tick"], "at": due, "next": due})
        moved = [(row["jid"], row["tick"], row["next"]) for row in rows]
        moved += [(each["jid"], each["former"], each["next"]) for each in answer.get("moved", ())]
        for jid, former, due in moved:
            why = "its next run was computed while Redis' clock was ahead"
            log.warning("recurring.rescheduled", recurring=jid, former=former, next=due, why=why)
        return rows

    def _log_put(self, rows: list[TickRow], answer: TickAnswer) -> None:
        for row, jid in zip(rows, answer["made"], strict=True):
            if jid:
                late = round(answer["now"] - row["at"], 3)
                log.info("recurring.triggered", jid=jid, recurring=row["jid"], late=late)

    def _log_invalid(self, jid: str, why: str) -> None:
        """Log a schedule that can't be computed, once."""
        if (jid, why) not in self._logged:
            self._logged.add((jid, why))
            log.error("recurring.refused", recurring=jid, why=why)


def due_instances(due: DueTemplate, now: float) -> list[TickRow]:
    """Return the instances that a due template gives, in order, each with its tick and the next.

    Missed ticks are coalesced into one, as of the latest time, unless `backlog` caps how many are
    replayed (0: all).

    Raises:
        ValueError: The cron expression or the time zone is invalid.
    """
    cron, first, backlog = Cron(due["cron"], due["timezone"]), due["tick"], due["backlog"]
    if due["until"] is not None:  # the latest tick of the past may be later than its end
        now = max(first, min(now, due["until"]))
    ticks = (
        cron.all(first, now, MOST_PER_TICK)
        if backlog == 0
        else cron.latest(first, now, backlog or 1)
    )
    following = [*ticks[1:], cron.next(ticks[-1] if backlog == 0 else now)]
    return [
        {"jid": due["jid"], "tick": tick, "at": at, "next": next_}
        for tick, at, next_ in zip([first, *ticks[1:]], ticks, following, strict=True)
    ]
