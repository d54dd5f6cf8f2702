"""What a run came to is decided from the run alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from aioqless import Fail, Job, Next, Retry
from aioqless.client.job import Reason
from aioqless.errors import InvalidData, UnknownKlass
from aioqless.handlers.retry_policy import RetryPolicy, fixed
from aioqless.worker.outcome import (
    LONGEST_MESSAGE,
    Completed,
    Failed,
    Released,
    Retried,
    format_error,
    outcome_of,
)
from aioqless.worker.running_jobs import Run
from tests.unit.records import job_of


def ended(
    *,
    result: Any = None,
    error: BaseException | None = None,
    stopped_by: Reason | None = None,
    settled: bool = False,
    data: bytes | None = None,
) -> Run:
    """A run of a job in the queue `mail` that has ended."""
    job: Job[Any] = job_of(queue="mail")
    job.settled = settled
    return Run(
        job,
        started=0,
        lock=60,
        deadline=60,
        result=result,
        error=error,
        stopped_by=stopped_by,
        data=data,
    )


def raised(function: Callable[[], object]) -> BaseException:
    """What a function raises, with its traceback."""
    try:
        function()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


# outcome_of


def test_a_handler_that_returned_completes_the_job() -> None:
    assert outcome_of(ended()) == Completed()


def test_whatever_else_a_handler_returns_is_of_no_interest() -> None:
    assert outcome_of(ended(result={"billing": 1})) == Completed()


def test_data_that_changed_are_stored_with_the_completion() -> None:
    assert outcome_of(ended(data=b"[1]")) == Completed(data=b"[1]")


def test_next_sends_the_job_on_with_the_data_that_changed() -> None:
    on = Next("billing", delay=10)
    assert outcome_of(ended(result=on, data=b"[1]")) == Completed(on, b"[1]")


def test_retry_runs_it_again_and_says_why() -> None:
    assert outcome_of(ended(error=Retry(30, group="busy", message="come back"))) == Retried(
        30, "busy", "come back"
    )


def test_a_bare_retry_runs_it_again_at_once() -> None:
    assert outcome_of(ended(error=Retry())) == Retried(0)


def test_fail_fails_it_in_the_group_that_was_named() -> None:
    assert outcome_of(ended(error=Fail("bad-address", "no postcode"))) == Failed(
        "bad-address", "no postcode"
    )


def test_any_other_exception_fails_it_in_a_group_of_queue_and_exception_with_the_traceback() -> (
    None
):
    outcome = outcome_of(ended(error=raised([].pop)))
    assert isinstance(outcome, Failed)
    assert outcome.group == "mail-IndexError"
    assert outcome.message.startswith("Traceback") and outcome.message.endswith(
        "IndexError: pop from empty list\n"
    )


def test_an_unknown_klass_has_its_own_group_and_says_who_is_known() -> None:
    assert outcome_of(ended(error=UnknownKlass("no handler"))) == Failed(
        "mail-UnknownKlass", "no handler"
    )


def test_data_that_the_handler_cannot_take_have_their_own_group() -> None:
    assert outcome_of(ended(error=InvalidData("no path"))) == Failed("mail-InvalidData", "no path")


def test_a_lost_lock_stores_nothing() -> None:
    assert outcome_of(ended(stopped_by="lost")) is None
    assert outcome_of(ended(stopped_by="lost", error=asyncio.CancelledError())) is None
    assert outcome_of(ended(stopped_by="lost", error=ValueError())) is None


def test_a_job_that_its_handler_completed_failed_or_released_itself_is_left_as_it_is() -> None:
    assert outcome_of(ended(settled=True)) is None
    assert outcome_of(ended(settled=True, error=ValueError())) is None
    assert (
        outcome_of(ended(settled=True, stopped_by="shutdown", error=asyncio.CancelledError()))
        is None
    )


def test_a_handler_that_was_stopped_by_the_end_of_the_worker_is_handed_back() -> None:
    assert outcome_of(ended(stopped_by="shutdown", error=asyncio.CancelledError())) == Released()


def test_what_breaks_in_a_handler_because_the_worker_ends_is_not_held_against_the_job() -> None:
    assert outcome_of(ended(stopped_by="shutdown", error=ConnectionResetError())) == Released()


def test_a_handler_that_ends_properly_although_the_worker_stops_is_taken_at_its_word() -> None:
    assert outcome_of(ended(stopped_by="shutdown")) == Completed()
    assert outcome_of(ended(stopped_by="shutdown", error=Retry(5))) == Retried(5)
    assert outcome_of(ended(stopped_by="shutdown", error=Fail("typo", "x"))) == Failed("typo", "x")


def test_a_handler_that_is_cancelled_by_nobody_of_the_worker_fails() -> None:
    outcome = outcome_of(ended(error=asyncio.CancelledError()))
    assert isinstance(outcome, Failed) and outcome.group == "mail-CancelledError"


@pytest.mark.parametrize(
    "error",
    [SystemExit(3), BaseExceptionGroup("both", [asyncio.CancelledError()]), GeneratorExit()],
)
def test_what_is_no_exception_fails_it_all_the_same(error: BaseException) -> None:
    outcome = outcome_of(ended(error=error))
    assert isinstance(outcome, Failed) and outcome.group == f"mail-{type(error).__name__}"


def test_a_run_that_took_too_long_fails_whatever_its_code_still_does() -> None:
    for end in (
        {},
        {"error": asyncio.CancelledError()},
        {"error": Retry()},
        {"result": Next("billing")},
    ):
        outcome = outcome_of(ended(stopped_by="timeout", **end))
        assert isinstance(outcome, Failed) and outcome.group == "mail-timeout"


def test_an_exception_that_the_policy_names_runs_it_again_and_others_fail_it() -> None:
    policy = RetryPolicy((LookupError,), fixed(7))
    again = outcome_of(ended(error=KeyError("postcode")), policy)
    assert (
        isinstance(again, Retried)
        and (again.delay, again.group) == (7, "mail-KeyError")
        and "postcode" in (again.message or "")
    )
    assert isinstance(outcome_of(ended(error=ValueError()), policy), Failed)
    assert isinstance(outcome_of(ended(error=KeyError(), stopped_by="shutdown"), policy), Released)


# format_error


def test_a_traceback_names_the_line_that_raised() -> None:
    def typo() -> None:
        raise ValueError("no such word")

    assert 'raise ValueError("no such word")' in format_error(raised(typo))


def test_a_traceback_that_is_too_long_keeps_its_end() -> None:
    def tell() -> None:
        raise ValueError("x" * 2 * LONGEST_MESSAGE + "the end")

    text = format_error(raised(tell))
    assert len(text) == LONGEST_MESSAGE + 1
    assert text.startswith("…") and text.endswith("the end\n")


def test_the_cause_of_an_exception_is_told_too() -> None:
    def wrap() -> None:
        try:
            dict[str, str]()["postcode"]
        except KeyError as error:
            raise ValueError("no address") from error

    text = format_error(raised(wrap))
    assert "KeyError: 'postcode'" in text and "ValueError: no address" in text


def test_an_exception_that_was_never_raised_is_told_without_a_traceback() -> None:
    assert format_error(ValueError("no such word")) == "ValueError: no such word\n"


def test_an_exception_that_cannot_be_shown_is_told_nevertheless() -> None:
    class Shy(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    assert "Shy" in format_error(Shy())


# What a handler raises and returns is checked where it is made


@pytest.mark.parametrize(
    "make",
    [
        lambda: Next(""),
        lambda: Next("a\nb"),
        lambda: Next("billing", delay=-1),
        lambda: Next("billing", delay=float("nan")),
        lambda: Retry(-1),
        lambda: Retry(float("inf")),
        lambda: Retry(group=""),
        lambda: Fail(""),
        lambda: Fail("a\x00b"),
    ],
)
def test_an_end_that_redis_would_refuse_is_refused_in_the_handler(
    make: Callable[[], object],
) -> None:
    with pytest.raises(ValueError):
        make()


def test_retry_and_fail_tell_about_themselves() -> None:
    assert str(Retry(30)) == "retry after 30 s"
    assert str(Retry(message="busy")) == "busy"
    assert str(Fail("typo")) == "typo"
    assert str(Fail("typo", "no such word")) == "no such word"
