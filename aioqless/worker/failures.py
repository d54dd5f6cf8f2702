"""How an error is worded: its failure group, its traceback, and its summary in one line.

Wording an error never raises: an exception of the application may raise whatever it likes when it
is asked for its text, its cause or its truth.
"""

from __future__ import annotations

import traceback
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, cast

from aioqless import validation
from aioqless.errors import ProcessDied
from aioqless.handlers.results import Retry
from aioqless.runtime.exception_fields import cause_of, context_of, error_is, traceback_of

if TYPE_CHECKING:
    from aioqless.worker.running_jobs import Run

_HERE = Path(__file__).parent
LONGEST_MESSAGE = 10_000  # characters of a traceback that are kept
LONGEST_REASON = 200  # characters of why a job is retried
HOW_TO_STOP = (
    "this ends the run, and not its worker. To stop a worker from a job, send its process SIGTERM: "
    "os.kill(os.getpid(), signal.SIGTERM)"
)

NOT_RAISED = "TypeError: exceptions must derive from BaseException"


class RemoteTraceback(Exception):
    """The traceback of an error raised in another process; the cause of its copy in this one."""


def reason_of(error: Retry) -> str:
    """Return the message of a Retry, or else the error that was handled; empty without either."""
    if error.message is not None:  # whatever the handler has made it
        return _shorten(validation.to_text(error.message))
    handled = cause_of(error)
    if handled is None:
        handled = context_of(error)
    return "" if handled is None or error_is(handled, RemoteTraceback) else summarize(handled)


def summarize(error: BaseException) -> str:
    """Return the type and the message of an error in one short line."""
    is_retry = error_is(error, Retry)
    text = reason_of(cast(Retry, error)) if is_retry else _shorten(validation.to_text(error))
    name = validation.type_name(error)
    return _shorten(f"{name}: {text}" if text else name)


def _shorten(text: str) -> str:
    text = " ".join(text[: 2 * LONGEST_REASON].split())
    return text if len(text) <= LONGEST_REASON else text[:LONGEST_REASON] + "…"


def group_of(run: Run, error: BaseException) -> str:
    """Return the failure group of an error's class in the run's queue."""
    return validation.fit_name(f"{run.job.queue}-{validation.type_name(error)}")


def describe_overdue(run: Run) -> str:
    """Return what the failure of a run says that timed out, or began too late."""
    if run.stopped_by == "timeout":
        return f"it ran for longer than {run.timeout} s"
    return f"it was to begin by {run.job.expiry:.3f}, and was popped later"


def describe_exhausted(queue: str, why: str = "") -> str:
    """Return what the failure of a job says that has no retries left."""
    return f'Job exhausted retries in queue "{queue}"' + (f": {why}" if why else "")


def format_error(error: BaseException) -> str:
    """Format the traceback from the handler on; the end is kept where it is too long."""
    if error_is(error, ProcessDied):
        return validation.to_text(error)
    cause = cause_of(error)
    if cause is not None and error_is(cause, RemoteTraceback):
        return validation.to_text(cause)
    text = validation.to_text(_format_traceback(error, _first_frame(error)))
    if error_is(error, SystemExit | KeyboardInterrupt):
        text += f"({HOW_TO_STOP})\n"
    elif text.endswith(f"{NOT_RAISED}\n"):  # `raise job.retry(...)`, as in Celery
        text += "(to retry the job, write `raise aioqless.Retry(delay=...)`)\n"
    return text if len(text) <= LONGEST_MESSAGE else "…" + text[-LONGEST_MESSAGE:]


def _first_frame(error: BaseException) -> TracebackType | None:
    """Return where the traceback begins: frames before the handler's are the worker's own."""
    first = frame = traceback_of(error)
    while frame is not None:
        if _HERE in Path(frame.tb_frame.f_code.co_filename).parents:
            first = frame.tb_next or first
        frame = frame.tb_next
    return first


def _format_traceback(error: BaseException, first: TracebackType | None) -> str:
    """Return the traceback; without causes and notes where `traceback` can't format the error."""
    try:
        return "".join(traceback.format_exception(type(error), error, first))
    except BaseException as wrong:  # raised by a property or a method of the exception, or a cause
        try:
            frames = "".join(traceback.format_tb(first))
        except BaseException:  # a loader of source code may raise, too
            frames = ""
        what = f"{validation.type_name(error)}: {validation.to_text(error)}"
        why = f"{validation.type_name(wrong)}: {validation.to_text(wrong)}"
        return (
            f"Traceback (most recent call last):\n{frames}{what}\n"
            f"(without causes and notes: formatting them raised {why})\n"
        )
