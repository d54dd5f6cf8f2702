"""The parts of a job's state: JobState, FailureReason, Failure, Progress, HeldBack, JobDetails."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, TypeAlias, TypeVar

from aioqless.errors import error_line

V = TypeVar("V")

HistoryEvent: TypeAlias = dict[str, Any]  # `when`, `what`, and what belongs to the kind of event


class JobState(StrEnum):
    """Where a job is in its lifecycle."""

    WAITING = "waiting"
    SCHEDULED = "scheduled"
    DEPENDS = "depends"
    RUNNING = "running"
    STALLED = "stalled"
    FAILED = "failed"
    COMPLETE = "complete"

    @classmethod
    def _missing_(cls, value: object) -> JobState:
        """Return a state that only another qless client knows, so that it can be shown."""
        state = str.__new__(cls, value)
        state._name_, state._value_ = "UNKNOWN", str(value)
        return state


ENDED = (JobState.COMPLETE, JobState.FAILED)


def is_stalled(state: str, expires: float) -> bool:
    """Return whether a job of this state, with a lock until then, is stalled."""
    return state == JobState.STALLED or (state == JobState.RUNNING and 0 < expires < time.time())


@dataclass(frozen=True, kw_only=True)
class Position:
    """The place of a waiting job in its queue.

    Attributes:
        queue: Name of the queue.
        ahead: Number of waiting jobs before it. With limits or fair turns, others may start first.
        popped: Number of runs of the queue that began today (UTC); the difference between two
            readings is the queue's rate.
    """

    queue: str
    ahead: int
    popped: int


@dataclass(frozen=True, kw_only=True)
class JobSetStatus:
    """The numbers of a job set's members.

    Attributes:
        name: Name of the set.
        added: Number of members.
        open: How many have not ended, and are not held.
        running: How many of these run, estimated from a sample of 100.
        held: How many a failed dependency holds.
        failed: How many have failed.
        canceled: How many were canceled.
        created: When it was created, in seconds since 1970.
        closed: When it was closed; None if it isn't.
        changed: When members were put or have ended, at the latest.
        then_jid: Jid of the job that was put when all were complete; None if none was.
        ended_jid: Jid of the job that was put when all had ended; None if none was.
        groups: The largest failure groups, at most 20, and the number of failed members in each,
            estimated from a sample of 500; empty in lists of sets.
    """

    name: str
    added: int
    open: int
    running: int
    held: int
    failed: int
    canceled: int
    created: float
    changed: float
    closed: float | None = None
    then_jid: str | None = None
    ended_jid: str | None = None
    groups: dict[str, int] = field(default_factory=dict)

    @property
    def complete(self) -> int:
        """How many are complete."""
        return self.added - self.open - self.held - self.failed - self.canceled

    @property
    def progress(self) -> float:
        """The share of members that have ended, from 0 to 1."""
        return 1 - self.open / self.added if self.added else float(self.has_ended)

    @property
    def has_ended(self) -> bool:
        """Whether the set is closed, and all members have ended."""
        return self.closed is not None and not self.open


@dataclass(frozen=True)
class Failure:
    """The failure of another job, as its branch and jobs that run after failures get it.

    Attributes:
        jid: Id of the failed job.
        klass: Name of its handler.
        group: Failure group.
        traceback: The whole text of its failure: the traceback, if there is one.
        data: Its data when it failed.
    """

    jid: str
    klass: str
    group: str
    traceback: str
    data: Any

    @property
    def message(self) -> str:
        """The type and the message of its error in one line."""
        return error_line(self.traceback)


@dataclass(frozen=True)
class FailureReason:
    """Why a job failed last.

    Attributes:
        group: Failure group.
        traceback: The whole text of the failure: the traceback, if there is one.
        when: When it failed, in seconds since 1970.
        worker: Name of the worker that ran it.
    """

    group: str
    traceback: str
    when: float
    worker: str

    @property
    def message(self) -> str:
        """The type and the message of the error in one line."""
        return error_line(self.traceback)


@dataclass(frozen=True)
class Progress:
    """The latest progress that a run reported.

    Attributes:
        share: How much is done, from 0 to 1.
        message: What is being done.
        when: When it was reported, in seconds since 1970.
    """

    share: float
    message: str
    when: float


@dataclass(frozen=True, kw_only=True)
class HeldBack:
    """The limit that keeps a scheduled job from starting, or what a parked one waits for.

    Attributes:
        key: Key of the limit; empty if there is none.
        until: When the limit is checked again at the latest, or the job is, in seconds since 1970.
        limit: Maximum number of jobs of the key that run at once, if the limit has one.
        running: Jids of jobs of the key that run, if they are as many; at most 10.
        running_total: The number of jobs of the key that run.
        rate: Maximum number of starts, or of what they cost, and the period in seconds, if the
            limit has one.
        used: How many starts count in the period now, or what they cost.
        cost: What a start of this job costs, if the limit has costs.
        paused_until: When the pause of the key ends, if it is paused.
        behind: Jid of a job that has been held back for longer than a period and goes first, if one
            does.
        waits_for: What a parked job waits for, each as kind and name: `wait:approval` for a signal,
            or `sleep:cool-down`.
    """

    until: float
    key: str = ""
    limit: int | None = None
    running: tuple[str, ...] = ()
    running_total: int = 0
    rate: tuple[int, float] | None = None
    used: float = 0
    cost: float | None = None
    paused_until: float | None = None
    behind: str | None = None
    waits_for: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """The limit, or what it waits for, in words."""
        if self.waits_for:
            return f"it waits for {', '.join(map(_describe_wait, self.waits_for))}"
        reasons = []
        if self.paused_until is not None:
            reasons.append("it is paused")
        if self.limit is not None:
            reasons.append(f"{self.running_total:,} of {self.limit:,} at a time run")
        if self.rate is not None:
            cost = "" if self.cost is None else f", this job costs {self.cost:,g}"
            most, period = self.rate
            reasons.append(f"{self.used:,g} of {most:,} in {period:g} s are used{cost}")
        if self.behind is not None:
            reasons.append(f"job {self.behind} has waited longer and goes first")
        return f"limit of key {self.key}: {'; '.join(reasons)}"


def _describe_wait(field: str) -> str:
    kind, _, name = field.partition(":")
    return f"{'signal' if kind == 'wait' else kind} {name}"


@dataclass(frozen=True, kw_only=True)
class JobDetails:
    """The events of a job, and its links to others. Each list has at most 1,000 entries.

    Attributes:
        events: The latest events, oldest first: dicts with `when` (seconds since 1970), `what` and
            more.
        events_total: Number of all events.
        dependencies: Jids of jobs that it waits for, in no particular order.
        dependencies_total: Number of all of them.
        dependents: Jids of jobs that wait for it, in no particular order.
        dependents_total: Number of all of them.
        after: Jids of the dependencies that it was last put with, complete ones included.
        after_total: Number of all of them.
        branch: The queue and klass of the job that its failure puts, if it has one of its own.
        cause: Jid of the failed job that it was put for, by `on_failure`.
        failures_seen: How many of its failures have put a job.
    """

    events: list[HistoryEvent] = field(default_factory=list)
    events_total: int = 0
    dependencies: list[str] = field(default_factory=list)
    dependencies_total: int = 0
    dependents: list[str] = field(default_factory=list)
    dependents_total: int = 0
    after: list[str] = field(default_factory=list)
    after_total: int = 0
    branch: dict[str, str] | None = None
    cause: str | None = None
    failures_seen: int = 0


@dataclass(frozen=True)
class StoredStep:
    """What a run of a job has stored for later runs.

    Attributes:
        kind: `step` or `cursor`; `signal` for one that was sent, `received` when the job has it,
            `wait` (its value: until when, if not for ever) and `timeout`; `sleep` and `slept`;
            `call` (its value: the job) and `called`.
        name: Its name.
        number: Its place in the order in which they were stored.
        when: When it was stored, in seconds since 1970.
        attempt: The attempt in which it was stored, from 1.
        value: What was stored, as JSON has it.
    """

    kind: str
    name: str
    number: int
    when: float
    attempt: int
    value: Any


@dataclass(frozen=True)
class Emitted:
    """A value that a job has emitted.

    Attributes:
        value: The value, as JSON has it.
        id: The position after it, from which another reader may continue.
    """

    value: Any
    id: str


@dataclass(frozen=True)
class Restarted:
    """Another run restarts the output: what came before is of no use."""

    id: str


@dataclass(frozen=True)
class Missed:
    """Values are missing: they were too old to be kept, or couldn't be sent.

    Attributes:
        count: How many.
        id: The position after them.
    """

    count: int
    id: str


@dataclass(frozen=True)
class Ended:
    """The job has ended.

    Attributes:
        state: Its state, complete or failed; None if the job no longer exists.
        id: The position after the end.
    """

    state: JobState | None
    id: str


Output: TypeAlias = Emitted | Restarted | Missed | Ended


class Cursor(
    AbstractAsyncContextManager["Cursor[V]", None],
    AbstractContextManager["Cursor[V]", None],
    Protocol[V],
):
    """A position in a list of items; a protocol, since the core imports no extension.

    Attributes:
        value: The position of the last item that was finished, in this run or an earlier one; None
            if none was.
    """

    value: V | None

    def advance(self, value: V) -> None:
        """Note that an item is finished; call it after the item.

        Args:
            value: The position of the item.

        Raises:
            InvalidData: It is not of the cursor's type.
            LockLost: Another run holds the job.
            Parked: The worker shuts down: the job is released, and its next run continues here.
        """


def list_stages(events: Sequence[HistoryEvent]) -> list[HistoryEvent]:
    """Return the stages of a job: one for each time that it was put into a queue.

    Args:
        events: Events of the job, oldest first.

    Returns:
        For each stage the queue, the worker, and when the job was last put, popped, done or failed.
    """
    stages: list[HistoryEvent] = []
    for event in events:
        if event["what"] == "put" or not stages:
            stages.append({})
        stage = stages[-1]
        match event["what"]:
            case "put":
                stage.update(q=event.get("q"), put=event["when"])
            case "popped":
                stage.update(popped=event["when"], worker=event.get("worker"))
            case "handed-over":
                stage["worker"] = event.get("to")
            case "done" | "failed" as what:
                stage[what] = event["when"]
    return stages


def explain_failure(message: str) -> str:
    """Explain a failure that the job's handler did not cause, but the loss of its worker.

    Args:
        message: Message of the failure.

    Returns:
        The likely cause; empty for any other failure.
    """
    if message.startswith("Lost its lock "):
        return (
            "Each run ended without a sign of its worker. The job may kill its worker (out of "
            "memory, a crash in C code) or keep it from renewing the lock; see the worker's log."
        )
    if message.startswith("Job exhausted retries "):
        return (
            "Its worker was lost in each run until no retry was left. The job, or another one "
            "beside it, may kill or block its workers."
        )
    return ""
