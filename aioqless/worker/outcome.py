"""The outcome of a run, and how it is reported: decided from the run alone, without any I/O."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, cast

from aioqless import validation
from aioqless.client import job_data
from aioqless.client.job import Job
from aioqless.client.job.state import JobState
from aioqless.errors import InvalidData, LockLost, NoSuchJob, UnknownKlass, WrongState
from aioqless.handlers.results import Fail, Next, Parked, Retry, Snooze, Throttled
from aioqless.handlers.retry_policy import RetryPolicy
from aioqless.lua import exhausted_group
from aioqless.runtime.exception_fields import error_is, members_of
from aioqless.runtime.log import log
from aioqless.worker.failures import (
    describe_exhausted,
    describe_overdue,
    format_error,
    group_of,
    reason_of,
    summarize,
)
from aioqless.worker.settings import Settings

if TYPE_CHECKING:
    from aioqless.worker.running_jobs import Run


def _limit_message(message: object) -> str:
    """Return a message, whatever the handler has made it, as it is stored and logged."""
    return validation.limit_message(validation.to_text(message))


@dataclass(frozen=True)
class RunCompleted:
    """The handler returned."""

    next: Next | None = None
    data: bytes | None = None  # the job's data, where the handler changed it
    result: bytes | None = None  # for how many seconds to keep what, as the script takes it
    answer: bytes | None = None  # the result for the job that has called it
    data_keys: bytes | None = None  # what the data makes of the job's keys


NOTHING_KEPT = RunCompleted()  # the outcome of most runs


@dataclass(frozen=True)
class RunRetried:
    """The job is to run again. A long message is cut."""

    delay: float
    group: str | None = None
    message: str | None = None
    data: bytes | None = None  # the job's data, where the handler changed it and raised Retry
    data_keys: bytes | None = None

    def __post_init__(self) -> None:
        if self.message is not None:
            object.__setattr__(self, "message", _limit_message(self.message))


@dataclass(frozen=True)
class RunFailed:
    """The job itself is at fault. A long message is cut."""

    group: str
    message: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", _limit_message(self.message))


@dataclass(frozen=True)
class RunReleased:
    """The job goes back to its queue, at once or after `delay` seconds; it uses no retry."""

    delay: float = 0
    why: str = "the worker stops"
    data: bytes | None = None  # the job's data, where the handler changed it and raised Snooze
    waits: tuple[str, ...] = ()  # until one of these waits is over
    paused_key: str | None = None  # the key of a limit that is paused for `delay` seconds
    data_keys: bytes | None = None


@dataclass(frozen=True)
class RunDeclined:
    """No handler here claims the klass: the job goes back for `delay` seconds, without a trace.

    It fails when workers have declined it for `timeout` seconds.
    """

    delay: float
    timeout: float
    group: str
    message: str


Outcome: TypeAlias = RunCompleted | RunRetried | RunFailed | RunReleased | RunDeclined
# What Redis said: a state, or how many retries remain; a refusal; None: it could not be stored.
StoreReply: TypeAlias = str | int | Exception | None


class End(NamedTuple):
    """The end of a run as it is logged, and as hooks get it."""

    level: Literal["info", "warning", "error"]
    event: str
    fields: dict[str, object]


FAIL_UNKNOWN = Settings(unknown_klass_timeout=0)


def outcome_of(run: Run, settings: Settings = FAIL_UNKNOWN) -> Outcome | None:
    """Decide what to store of a run that has ended.

    Args:
        run: The run.
        settings: The retry policy of handlers without one of their own, and what becomes of a job
            of an unknown klass; by default it fails.

    Returns:
        The outcome; None if the job is no longer this run's.
    """
    if run.job.settled or run.stopped_by == "lost":
        return None
    if run.stopped_by in ("timeout", "too late"):  # decided then, whatever its code still does
        return _overdue(run)
    if run.error is None:
        following = run.result if isinstance(run.result, Next) else None
        stored = (run.data, run.data_keys, run.kept, run.answer)
        if following is None and stored == (None, None, None, None):
            return NOTHING_KEPT
        return RunCompleted(following, run.data, run.kept, run.answer, run.data_keys)
    return _outcome_of_error(run, run.error, settings)


def failed_by(run: Run, error: BaseException) -> RunFailed:
    """Return the outcome of a run that fails by an error, whatever that is."""
    return RunFailed(group_of(run, error), format_error(error))


def _overdue(run: Run) -> RunFailed:
    group = "timeout" if run.stopped_by == "timeout" else "expired"
    return RunFailed(validation.fit_name(f"{run.job.queue}-{group}"), describe_overdue(run))


def _outcome_of_error(run: Run, error: BaseException, settings: Settings) -> Outcome:
    if error_is(error, Snooze | Throttled | Parked):
        return _released(run, cast("Snooze | Throttled | Parked", error))
    if error_is(error, Fail):
        fail = cast(Fail, error)
        return RunFailed(fail.group or group_of(run, fail), fail.message)
    if error_is(error, UnknownKlass | InvalidData):
        return _declined_or_failed(run, error, settings)
    if run.stopped_by == "shutdown" and not error_is(error, Retry):
        return RunReleased()
    return _retried_or_failed(run, error, settings.retry)


def _released(run: Run, error: Snooze | Throttled | Parked) -> RunReleased | RunFailed:
    if isinstance(error, Snooze):
        return RunReleased(error.delay, "snoozed", run.data, data_keys=run.data_keys)
    if isinstance(error, Parked):
        return RunReleased(0, str(error), run.data, error.waits, data_keys=run.data_keys)
    try:
        key = run.job_run.key_of(error.limit)
    except InvalidData as wrong:
        return RunFailed(group_of(run, wrong), validation.to_text(wrong))
    return RunReleased(
        error.retry_after, str(error), run.data, paused_key=key, data_keys=run.data_keys
    )


def _declined_or_failed(
    run: Run, error: BaseException, settings: Settings
) -> RunDeclined | RunFailed:
    group, message = group_of(run, error), validation.to_text(error)
    if error_is(error, UnknownKlass) and settings.unknown_klass_timeout > 0:
        delay, timeout = settings.unknown_klass_delay, settings.unknown_klass_timeout
        return RunDeclined(delay, timeout, group, message)
    return RunFailed(group, message)


def _retried_or_failed(
    run: Run, error: BaseException, policy: RetryPolicy
) -> RunRetried | RunFailed:
    """Decide by a Retry, or by the retry policy of the handler, or else that of the worker."""
    if run.handler and run.handler.retry:
        policy = run.handler.retry
    used = run.job.retries - run.job.remaining
    try:
        if error_is(error, Retry):
            retry = cast(Retry, error)
            return _retried(run, retry, policy.pause(used) if retry.delay is None else retry.delay)
        delay = policy.delay(error, used)
    except BaseException as wrong:  # a backoff function is the application's code: SystemExit, too
        return failed_by(run, wrong)
    failed = failed_by(run, error)
    return failed if delay is None else RunRetried(delay, failed.group, failed.message)


def _retried(run: Run, error: Retry, delay: float) -> RunRetried:
    """Return the outcome of a Retry; the failure of its last one says why."""
    group, message, reason = error.group, error.message, reason_of(error)
    if reason and run.job.remaining <= 0 and not (group and message):
        group = group or validation.fit_name(exhausted_group(run.job.queue))
        why = reason if message is None else message
        message = describe_exhausted(run.job.queue, why)
    return RunRetried(delay, group, message, run.data, run.data_keys)


def end_of(run: Run, outcome: Outcome | None, reply: StoreReply) -> End | None:
    """Decide how the end of a run is reported.

    Args:
        run: The run.
        outcome: Its outcome; None if the job was no longer this run's.
        reply: What Redis said of the outcome.

    Returns:
        The end; None if the outcome was dropped, which is reported by itself.
    """
    if outcome is None:
        return _end_without_outcome(run)
    match outcome, reply:
        case _, None:
            return None
        case _, Exception() as refusal:
            return _end_of_refused(refusal)
        case RunCompleted(), "complete":
            return End("info", "job.completed", {})
        case RunCompleted(following), state:
            to = following.queue if following else None
            return End("info", "job.advanced", {"to": to, "state": state})
    return _end_of_unfinished(run, outcome, reply)


def show_end(run: Run, outcome: Outcome | None, reply: StoreReply) -> None:
    """Let a job have the state, the failure and the retries that its run ended with, for hooks.

    Args:
        run: The run.
        outcome: Its outcome; None if the job was no longer this run's.
        reply: What Redis said of the outcome.
    """
    job = run.job
    match outcome, reply:
        case RunCompleted() | RunReleased() | RunDeclined(), str() as state if state != "failed":
            run.job_run.show_end(JobState(state))
        case RunRetried(delay), int() as remaining if remaining >= 0:
            superseded = remaining == job.remaining
            later = JobState.SCHEDULED if delay > 0 else JobState.WAITING
            state = JobState.COMPLETE if superseded else later
            failure = (
                (outcome.group, outcome.message) if outcome.group and outcome.message else None
            )
            run.job_run.show_end(state, failure, remaining)
        case RunFailed() | RunRetried() | RunDeclined(), str() | int():
            group = outcome.group or exhausted_group(job.queue)
            message = outcome.message if outcome.group and outcome.message else None
            if message is None:
                message = describe_exhausted(job.queue)
            run.job_run.show_end(JobState.FAILED, (group, message))


def _end_of_refused(refusal: Exception) -> End:
    if isinstance(refusal, LockLost | WrongState | NoSuchJob):
        return End("warning", "job.lock_lost", {"why": str(refusal)})
    return End("error", "job.refused", {"why": str(refusal)})


def _end_of_unfinished(run: Run, outcome: Outcome, reply: StoreReply) -> End | None:
    match outcome, reply:
        case RunRetried(delay), int() as remaining if remaining >= 0:
            why = summarize(run.error) if run.error else ""
            if remaining == run.job.remaining:  # it used no retry
                return End("info", "job.superseded", {"why": why})
            return End("info", "job.retried", {"delay": delay, "remaining": remaining, "why": why})
        case RunReleased(delay, why), _:
            return End("info", "job.released", {"delay": delay, "why": why})
        case RunDeclined(), state if state != "failed":  # logged once for its klass
            return None
        case (
            RunRetried(_, group, message)
            | RunFailed(group, message)
            | RunDeclined(_, _, group, message),
            _,
        ):
            group = group or exhausted_group(run.job.queue)
            exhausted = isinstance(outcome, RunRetried)  # it had no retries left
            return End(
                "warning",
                "job.failed",
                {"group": group, "message": message, "exhausted": exhausted},
            )
    raise AssertionError(outcome)


def _end_without_outcome(run: Run) -> End:
    if not run.job.settled:
        return End("warning", "job.lock_lost", {"why": "it was taken away while it ran"})
    error = validation.describe(run.error) if run.error else None
    return End("info", "job.settled", {"error": error})


def encode_result(result: object, max_bytes: int) -> bytes:
    """Return a result as JSON.

    Raises:
        InvalidData: It can't be stored.
    """
    try:
        return b"false" if result is False else job_data.encode(result, max_bytes)
    except InvalidData as wrong:
        raise InvalidData(f"the result can't be stored: {wrong}") from None


def record_result(run: Run, result: object) -> None:
    """Record the returned value, and which parts of it and of the job's data to store.

    Raises:
        Parked: The run has parked: what it returned is dropped.
        Fail: The value stands for work that was not done, or for an outcome that has no effect.
        InvalidData: It can't be stored.
    """
    if (parked := run.job_run.parked) is not None:
        if result is not None:
            _log_ignored_park(f"it returned {validation.type_name(result)}")
        raise parked
    check_returned(run.job, result)
    run.result, run.data = result, run.job_run.changed_data()
    run.data_keys = run.job_run.changed_keys()
    if run.handler is None or isinstance(result, Next):
        return
    if not (run.handler.result_ttl or run.job_run.fields.is_called):
        return
    text = encode_result(result, run.job_run.max_data)
    try:
        run.handler.check_result(text)
    except InvalidData as wrong:
        raise InvalidData(f"the result can't be stored: {wrong}") from None
    stored = run.job_run.encode_result(text)
    if run.handler.result_ttl:
        run.kept = b"%d %s" % (run.handler.result_ttl, stored)
    if run.job_run.fields.is_called:
        run.answer = stored


def _log_ignored_park(what: str) -> None:
    why = "its handler caught `Parked`, and is run again for what it waits for"
    log.warning("job.park_ignored", instead=what, why=why)


def check_returned(job: Job, result: object) -> None:
    """Check that what a handler has returned is a result.

    An iterator that can be closed may be: a file, or a database cursor whose statement was run.

    Raises:
        Fail: It is work that was not done, such as a coroutine or a generator, or an outcome that
            has no effect when it is returned.
    """
    if result is None:
        return
    if inspect.isawaitable(result) or inspect.isasyncgen(result):
        how = "which was not awaited: write `return await ...`"
        if inspect.iscoroutine(result):
            result.close()  # else Python warns, too
    elif inspect.isgenerator(result) or (
        isinstance(result, Iterator | AsyncIterator) and not hasattr(result, "close")
    ):
        how = "whose items were not taken: return a list of them"
    elif isinstance(result, BaseException) or _is_class_of(result, BaseException):
        how = "which has no effect: raise it"
    elif _is_class_of(result, Next):
        how = "the class: return one, such as `Next(queue)`"
    else:
        return
    raise Fail(
        f"{job.klass} returned {job_data.shorten(result)}, {how}",
        group=validation.fit_name(f"{job.queue}-outcomes"),
    )


def _is_class_of(value: object, kind: type) -> bool:
    return isinstance(value, type) and issubclass(value, kind)


def record_error(run: Run, error: BaseException) -> None:
    """Record what the handler raised, and which data to store where it asks for another run.

    A run that has parked is to continue in another one, whatever its handler made of `Parked`: its
    error may be due to that. Data that can't be stored fails the job, as it does when the handler
    returns.
    """
    parked: BaseException | None = _parked_in(error)
    if parked is None and (parked := run.job_run.parked) is not None:
        _log_ignored_park(summarize(error))
    run.error = error if parked is None else parked
    if error_is(run.error, Retry | Snooze | Throttled | Parked):
        try:
            run.data, run.data_keys = run.job_run.changed_data(), run.job_run.changed_keys()
        except BaseException as wrong:  # a value in the data may raise anything when it is encoded
            run.error = wrong


def _parked_in(error: BaseException) -> Parked | None:
    """Return a Parked if the error is one, or a group of nothing else."""
    found, pending = None, [error]
    while pending:
        each = pending.pop()
        if error_is(each, Parked):
            found = cast(Parked, each) if found is None else found
        elif error_is(each, BaseExceptionGroup):
            pending += members_of(cast("BaseExceptionGroup[BaseException]", each))
        else:
            return None
    return found
