"""What a run came to. `outcome_of` decides it from the run alone; only the finisher stores it."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from aioqless import validation
from aioqless.client import json_data
from aioqless.errors import InvalidData, ProcessDied, UnknownKlass
from aioqless.handlers.retry_policy import NEVER, RetryPolicy

if TYPE_CHECKING:
    from aioqless.worker.run import Run

_HERE = Path(__file__).parent
LONGEST_MESSAGE = 10_000  # characters of a traceback that are kept


@dataclass(frozen=True)
class Next:
    """Return it from a handler to complete the job and send it on to another queue, after `delay`
    seconds or the jobs it `depends` on."""

    queue: str
    delay: float | None = None
    depends: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        validation.checked("queue", self.queue)
        validation.checked_number("delay", self.delay or 0, least=0)
        validation.checked_list("depends", self.depends or ())


class Retry(Exception):
    """Raise it in a handler to run the job again, after `delay` seconds, at the cost of a retry;
    without any left the job fails."""

    delay: float = 0
    group: str | None = None
    message: str | None = None

    def __init__(
        self, delay: float = 0, group: str | None = None, message: str | None = None
    ) -> None:
        super().__init__(message or f"retry after {delay} s")
        self.delay = validation.checked_number("delay", delay, least=0)
        self.group = None if group is None else validation.checked("group", group)
        self.message = None if message is None else validation.readable(message)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.delay, self.group, self.message)


class Fail(Exception):
    """Raise it in a handler to fail the job in a group of your choice."""

    group: str = ""
    message: str = ""

    def __init__(self, group: str, message: str = "") -> None:
        super().__init__(message or group)
        self.group = validation.checked("group", group)
        self.message = validation.readable(message)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.group, self.message)


@dataclass(frozen=True)
class Complete:
    """The handler returned; `data` are those to store, where it changed them, `result` what it
    returned, where that is kept."""

    next: Next | None = None
    data: bytes | None = None
    result: bytes | None = None  # for how many seconds to keep what, as the script takes it


@dataclass(frozen=True)
class Again:
    """It is to run again."""

    delay: float
    group: str | None = None
    message: str | None = None


@dataclass(frozen=True)
class Failed:
    """Something is wrong with the job itself."""

    group: str
    message: str


@dataclass(frozen=True)
class Release:
    """The job goes back, at no cost of a retry: to its place, or not before `delay` seconds have
    passed."""

    delay: float = 0
    why: str = "the worker stops"


class There(Exception):
    """The traceback of an error that was raised in another process: the cause of its copy in this
    one."""


Outcome: TypeAlias = Complete | Again | Failed | Release


def outcome_of(
    run: Run, policy: RetryPolicy = NEVER, hand_back: float | None = None
) -> Outcome | None:
    """What to store of a run that has ended; None when there is nothing, since the job is not this
    run's any more.

    `policy` is what holds where the handler has none of its own. A job of an unknown klass is
    handed back for `hand_back` seconds."""
    if run.job.settled or run.stopped_by == "lost":
        return None
    if run.stopped_by == "timeout":  # decided at that moment, whatever its code still does
        return Failed(
            validation.fitted(f"{run.job.queue}-timeout"), f"it ran for longer than {run.timeout} s"
        )
    if run.stopped_by == "too late":
        return Failed(
            validation.fitted(f"{run.job.queue}-too-late"),
            f"it was to begin by {run.job.start_by:.3f}, and was handed out later",
        )
    match run.error:
        case None:
            return Complete(
                run.result if isinstance(run.result, Next) else None, run.data, run.kept
            )
        case Retry() as again:
            return Again(again.delay, again.group, again.message)
        case Fail(group=str(group)) as failed if group:
            return Failed(group, failed.message)
        case UnknownKlass() as unknown if hand_back is not None:
            return Release(hand_back, validation.readable(unknown))
        case UnknownKlass() | InvalidData() as known:
            return Failed(group_of(run, known), validation.readable(known))
        case _ if run.stopped_by == "shutdown":
            return Release()
        case error:
            policy = run.handler.retry if run.handler and run.handler.retry else policy
            delay = policy.delay(error, run.job.retries - run.job.remaining)
            group, message = group_of(run, error), brief(error)
            return Failed(group, message) if delay is None else Again(delay, group, message)


def returned(run: Run, result: Any) -> None:
    """Take down what the handler returned, and what of it and of the job's data is to be stored.
    Raises InvalidData."""
    run.result, run.data = result, run.job.changed_data()
    if run.handler is None or not run.handler.result_ttl or isinstance(result, Next):
        return
    try:
        text = b"false" if result is False else json_data.encoded(result, run.job.max_data)
    except InvalidData as wrong:
        raise InvalidData(f"what the handler returned can't be kept: {wrong}") from None
    run.kept = b"%d %s" % (run.handler.result_ttl, run.job.encoded_result(text))


def group_of(run: Run, error: BaseException) -> str:
    """The group of a kind of error in the run's queue."""
    return validation.fitted(f"{run.job.queue}-{type(error).__name__}")


def brief(error: BaseException) -> str:
    """The traceback from the handler on, its end kept when it is too long."""
    match error:
        case ProcessDied():
            return str(error)
        case BaseException(__cause__=There(args=(str(text),))):
            return text
    first = frame = error.__traceback__
    while frame is not None:
        if (
            _HERE in Path(frame.tb_frame.f_code.co_filename).parents
        ):  # frames before the handler's are the worker's own business
            first = frame.tb_next or first
        frame = frame.tb_next
    text = validation.readable("".join(traceback.format_exception(type(error), error, first)))
    return text if len(text) <= LONGEST_MESSAGE else "…" + text[-LONGEST_MESSAGE:]
