"""The outcome of a run is computed from the run alone."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from aioqless import Fail, Limit, Next, Retry, Settings, Snooze, Throttled
from aioqless.client.job import StopReason
from aioqless.errors import InvalidData, UnknownKlass
from aioqless.handlers.retry_policy import RetryPolicy, fixed
from aioqless.worker.failures import LONGEST_MESSAGE, format_error
from aioqless.worker.outcome import (
    End,
    RunCompleted,
    RunDeclined,
    RunFailed,
    RunReleased,
    RunRetried,
    end_of,
    outcome_of,
)
from aioqless.worker.running_jobs import Run
from tests.unit.records import run_of


def ended(
    *,
    result: Any = None,
    error: BaseException | None = None,
    stopped_by: StopReason | None = None,
    settled: bool = False,
    data: bytes | None = None,
) -> Run:
    """Return an ended run of a job in the queue `mail`."""
    job_run = run_of(queue="mail")
    job_run.settled = settled
    return Run(
        job_run,
        started=0,
        lock=60,
        deadline=60,
        result=result,
        error=error,
        stopped_by=stopped_by,
        data=data,
    )


def raised(function: Callable[[], object]) -> BaseException:
    """Return the exception that a function raises, with its traceback."""
    try:
        function()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


# outcome_of


def test_returned_handler_completes_the_job() -> None:
    assert outcome_of(ended()) == RunCompleted()


def test_changed_data_is_stored_with_the_completion() -> None:
    assert outcome_of(ended(data=b"[1]")) == RunCompleted(data=b"[1]")


def test_next_moves_the_job_with_its_changed_data() -> None:
    on = Next("billing", delay=10)
    assert outcome_of(ended(result=on, data=b"[1]")) == RunCompleted(on, b"[1]")


def test_retry_has_a_delay_and_a_message() -> None:
    assert outcome_of(ended(error=Retry("come back", delay=30, group="busy"))) == RunRetried(
        30, "busy", "come back"
    )


def _retry_for_an_error() -> None:
    try:
        raise ConnectionError("bank\nis away")
    except ConnectionError:
        raise Retry(delay=5)  # noqa: B904  # as handlers write it


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (ValueError("no\nword"), "ValueError: no word"),
        (KeyError(), "KeyError"),
        (Retry("later", delay=5), "Retry: later"),
        (Retry(delay=5), "Retry"),
        (raised(_retry_for_an_error), "Retry: ConnectionError: bank is away"),
        (ValueError("x" * 999), "ValueError: " + "x" * 188 + "…"),
    ],
)
def test_end_of_a_retried_job_says_why(error: BaseException, why: str) -> None:
    run = ended(error=error)
    end = end_of(run, RunRetried(5), 3)
    assert end == End("info", "job.retried", {"delay": 5, "remaining": 3, "why": why})


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (Retry("later", delay=5), "later"),
        (raised(_retry_for_an_error), "ConnectionError: bank is away"),
    ],
)
def test_last_retry_without_a_group_fails_with_the_reason(error: BaseException, why: str) -> None:
    run = ended(error=error)
    run.job_run.fields.remaining = 0
    assert outcome_of(run) == RunRetried(
        5, "failed-retries-mail", f'Job exhausted retries in queue "mail": {why}'
    )


def test_retry_without_a_delay_waits_as_the_policy_says() -> None:
    policy = RetryPolicy(backoff=lambda used: 7 + used)
    run = ended(error=Retry("busy"))
    run.job_run.fields.remaining = run.job.retries - 2
    assert outcome_of(run, Settings(retry=policy)) == RunRetried(9, None, "busy")
    assert outcome_of(ended(error=Retry(delay=0)), Settings(retry=policy)) == RunRetried(0)


def test_last_retry_with_a_group_alone_fails_with_the_error_that_was_handled() -> None:
    def retry() -> None:
        raise Retry(delay=5, group="bank") from ConnectionError("away")

    run = ended(error=raised(retry))
    run.job_run.fields.remaining = 0
    why = 'Job exhausted retries in queue "mail": ConnectionError: away'
    assert outcome_of(run) == RunRetried(5, "bank", why)


@pytest.mark.parametrize("end", [Retry, Fail])
def test_message_of_an_end_must_be_a_string(end: Any) -> None:
    with pytest.raises(TypeError, match="message must be a string"):
        end(30)


def test_fail_without_a_group_uses_that_of_its_class() -> None:
    assert outcome_of(ended(error=Fail("no postcode"))) == RunFailed("mail-Fail", "no postcode")


def test_fail_uses_the_given_group() -> None:
    assert outcome_of(ended(error=Fail("no postcode", group="bad-address"))) == RunFailed(
        "bad-address", "no postcode"
    )


def test_other_exceptions_fail_in_a_group_of_queue_and_exception_with_the_traceback() -> None:
    outcome = outcome_of(ended(error=raised([].pop)))
    assert isinstance(outcome, RunFailed)
    assert outcome.group == "mail-IndexError"
    assert outcome.message.startswith("Traceback") and outcome.message.endswith(
        "IndexError: pop from empty list\n"
    )


def test_unknown_klass_has_its_own_group_and_lists_known_ones() -> None:
    assert outcome_of(ended(error=UnknownKlass("no handler"))) == RunFailed(
        "mail-UnknownKlass", "no handler"
    )


def test_unknown_klass_is_declined_for_other_workers() -> None:
    assert outcome_of(ended(error=UnknownKlass("no handler")), Settings()) == RunDeclined(
        5, 600, "mail-UnknownKlass", "no handler"
    )


@pytest.mark.parametrize("delay", [30, timedelta(seconds=30)])
def test_snoozed_job_is_released_for_that_time(delay: float | timedelta) -> None:
    assert outcome_of(ended(error=Snooze(delay))) == RunReleased(30, "snoozed")


@pytest.mark.parametrize(
    ("delay", "kind"), [(0, ValueError), (-1, ValueError), ("30", TypeError), (None, TypeError)]
)
def test_snooze_needs_a_delay(delay: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="delay"):
        Snooze(delay)


def test_snooze_survives_the_way_between_processes() -> None:
    assert pickle.loads(pickle.dumps(Snooze(2.5))).delay == 2.5


def test_invalid_data_has_its_own_group() -> None:
    assert outcome_of(ended(error=InvalidData("no path"))) == RunFailed(
        "mail-InvalidData", "no path"
    )


def test_lost_lock_stores_nothing() -> None:
    assert outcome_of(ended(stopped_by="lost")) is None
    assert outcome_of(ended(stopped_by="lost", error=asyncio.CancelledError())) is None
    assert outcome_of(ended(stopped_by="lost", error=ValueError())) is None


def test_job_ended_by_its_handler_is_left_unchanged() -> None:
    assert outcome_of(ended(settled=True)) is None
    assert outcome_of(ended(settled=True, error=ValueError())) is None
    assert (
        outcome_of(ended(settled=True, stopped_by="shutdown", error=asyncio.CancelledError()))
        is None
    )


def test_job_of_a_handler_stopped_by_shutdown_is_released() -> None:
    assert outcome_of(ended(stopped_by="shutdown", error=asyncio.CancelledError())) == RunReleased()


def test_error_during_shutdown_releases_the_job() -> None:
    assert outcome_of(ended(stopped_by="shutdown", error=ConnectionResetError())) == RunReleased()


def test_outcome_of_a_handler_that_returns_during_shutdown_counts() -> None:
    assert outcome_of(ended(stopped_by="shutdown")) == RunCompleted()
    assert outcome_of(ended(stopped_by="shutdown", error=Retry(delay=5))) == RunRetried(5)
    assert outcome_of(ended(stopped_by="shutdown", error=Fail("x", group="typo"))) == RunFailed(
        "typo", "x"
    )


def test_cancellation_from_outside_the_worker_fails_the_job() -> None:
    outcome = outcome_of(ended(error=asyncio.CancelledError()))
    assert isinstance(outcome, RunFailed) and outcome.group == "mail-CancelledError"


@pytest.mark.parametrize(
    "error",
    [SystemExit(3), BaseExceptionGroup("both", [asyncio.CancelledError()]), GeneratorExit()],
)
def test_base_exception_fails_the_job(error: BaseException) -> None:
    outcome = outcome_of(ended(error=error))
    assert isinstance(outcome, RunFailed) and outcome.group == f"mail-{type(error).__name__}"


def test_timed_out_run_fails_whatever_its_code_returns() -> None:
    for end in (
        {},
        {"error": asyncio.CancelledError()},
        {"error": Retry(delay=0)},
        {"result": Next("billing")},
    ):
        outcome = outcome_of(ended(stopped_by="timeout", **end))
        assert isinstance(outcome, RunFailed) and outcome.group == "mail-timeout"


def test_retry_policy_retries_listed_exceptions_only() -> None:
    policy = RetryPolicy((LookupError,), fixed(7))
    again = outcome_of(ended(error=KeyError("postcode")), Settings(retry=policy))
    assert (
        isinstance(again, RunRetried)
        and (again.delay, again.group) == (7, "mail-KeyError")
        and "postcode" in (again.message or "")
    )
    assert isinstance(outcome_of(ended(error=ValueError()), Settings(retry=policy)), RunFailed)
    assert isinstance(
        outcome_of(ended(error=KeyError(), stopped_by="shutdown"), Settings(retry=policy)),
        RunReleased,
    )


# format_error


def test_raise_of_what_is_no_exception_says_how_to_retry() -> None:
    def handler(retry: Any) -> None:
        raise retry  # Celery's `raise task.retry()`

    text = format_error(raised(lambda: handler("retry")))
    assert text.endswith("(to retry the job, write `raise aioqless.Retry(delay=...)`)\n")


def test_too_long_traceback_keeps_its_end() -> None:
    def tell() -> None:
        raise ValueError("x" * 2 * LONGEST_MESSAGE + "the end")

    text = format_error(raised(tell))
    assert len(text) == LONGEST_MESSAGE + 1
    assert text.startswith("…") and text.endswith("the end\n")


def test_exception_that_was_never_raised_has_no_traceback() -> None:
    assert format_error(ValueError("no such word")) == "ValueError: no such word\n"


# Outcomes are validated where the handler makes them


@pytest.mark.parametrize(
    "make",
    [
        lambda: Next(""),
        lambda: Next("a\nb"),
        lambda: Next("billing", delay=-1),
        lambda: Next("billing", delay=float("nan")),
        lambda: Retry(delay=-1),
        lambda: Retry(delay=float("inf")),
        lambda: Retry(group=""),
        lambda: Fail("x", group=""),
        lambda: Fail("x", group="a\x00b"),
    ],
)
def test_invalid_outcome_is_refused_in_the_handler(
    make: Callable[[], object],
) -> None:
    with pytest.raises(ValueError):
        make()


def test_repr_describes_retry_and_fail() -> None:
    assert str(Retry(delay=30)) == "retry after 30 s"
    assert str(Retry("busy")) == "busy"
    assert str(Fail("typo", group="typo")) == "typo"
    assert str(Fail("no such word", group="typo")) == "no such word"


API = Limit("api", rate=(5, 60))


def test_throttled_survives_the_way_between_processes() -> None:
    copy = pickle.loads(pickle.dumps(Throttled(API, 2.5)))
    assert (copy.limit, copy.retry_after) == (API, 2.5)


@pytest.mark.parametrize(
    ("limit", "retry_after", "kind"),
    [(API, 0, ValueError), (API, -1, ValueError), (API, "30", TypeError), ("api", 30, TypeError)],
)
def test_throttled_needs_a_limit_and_a_pause(
    limit: Any, retry_after: Any, kind: type[Exception]
) -> None:
    with pytest.raises(kind, match=r"limit|retry_after"):
        Throttled(limit, retry_after)
