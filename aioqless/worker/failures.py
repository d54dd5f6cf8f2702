"""How an error is worded: its failure group, its traceback, and its summary in one line."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from aioqless import validation
from aioqless.errors import ProcessDied
from aioqless.handlers.results import Retry

if TYPE_CHECKING:
    from aioqless.worker.running_jobs import Run

_HERE = Path(__file__).parent
LONGEST_MESSAGE = 10_000  # characters of a traceback that are kept
LONGEST_REASON = 200  # characters of why a job is retried


class RemoteTraceback(Exception):
    """The traceback of an error raised in another process; the cause of its copy in this one."""


def reason_of(error: Retry) -> str:
    """Return the message of a Retry, or else the error that was handled; empty without either."""
    if error.message is not None:  # whatever the handler has made it
        return _shorten(validation.to_text(error.message))
    handled = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "" if handled is None or isinstance(handled, RemoteTraceback) else summarize(handled)


def summarize(error: BaseException) -> str:
    """Return the type and the message of an error in one short line."""
    text = reason_of(error) if isinstance(error, Retry) else _shorten(validation.to_text(error))
    return _shorten(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def _shorten(text: str) -> str:
    text = " ".join(text[: 2 * LONGEST_REASON].split())
    return text if len(text) <= LONGEST_REASON else text[:LONGEST_REASON] + "…"


def group_of(run: Run, error: BaseException) -> str:
    """Return the failure group of an error's class in the run's queue."""
    return validation.fit_name(f"{run.job.queue}-{type(error).__name__}")


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
    match error:
        case ProcessDied():
            return str(error)
        case BaseException(__cause__=RemoteTraceback(args=(str(text),))):
            return text
    first = frame = error.__traceback__
    while frame is not None:  # frames before the handler's are the worker's own
        if _HERE in Path(frame.tb_frame.f_code.co_filename).parents:
            first = frame.tb_next or first
        frame = frame.tb_next
    text = validation.to_text("".join(traceback.format_exception(type(error), error, first)))
    return text if len(text) <= LONGEST_MESSAGE else "…" + text[-LONGEST_MESSAGE:]
