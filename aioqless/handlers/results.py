"""How a handler decides its job's outcome: Next, Retry, Snooze, Throttled, Fail, and Parked."""

from __future__ import annotations

from dataclasses import dataclass

from aioqless import validation
from aioqless.client.put_options import Limit
from aioqless.hints import suggest_options
from aioqless.validation import Duration, Seconds


@dataclass(frozen=True)
class Next:
    """Return it from a handler to complete the job and move it on to another queue.

    Args:
        queue: The next queue.
        delay: Time before it is ready there, in seconds or as a timedelta.
        depends: The jids of jobs that must be completed first.

    Raises:
        ValueError: A value is out of range.
    """

    queue: str
    delay: Duration = Duration(0)
    depends: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        validation.check_name("queue", self.queue)
        validation.check_names("depends", self.depends or ())


@suggest_options(
    {
        **dict.fromkeys(("countdown", "defer", "eta"), "delay="),
        "exc": "`raise Retry(...) from error`",
        "max_retries": "@job(retries=...)",
    }
)
class Retry(Exception):
    """Raise it in a handler to retry the job; if it has no retries left, it fails.

    Args:
        message: Why; it is in the log, and in the failure when no retry is left.
        delay: Time before it runs again, in seconds or as a timedelta; default: what the `backoff`
            of the handler, or else of the worker, returns.
        group: The failure group if no retry is left; default: `failed-retries-<queue>`.

    Raises:
        TypeError: A value is of the wrong type.
        ValueError: A value is out of range.
    """

    message: str | None = None
    delay: float | None = None
    group: str | None = None

    def __init__(
        self, message: str | None = None, *, delay: Seconds | None = None, group: str | None = None
    ) -> None:
        self.message = None if message is None else _check_message(message, "Retry(delay=30)")
        self.delay = None if delay is None else validation.check_seconds("delay", delay)
        self.group = None if group is None else validation.check_name("group", group)
        when = "by its backoff" if delay is None else f"after {self.delay} s"
        super().__init__(message or f"retry {when}")


class Snooze(Exception):
    """Raise it in a handler to run the job again later; unlike Retry, it uses no retry.

    It fits what is no error: a result that isn't there yet, a service that asks to come back later.
    A job may be snoozed any number of times.

    Args:
        delay: Seconds, or a timedelta, before it runs again.

    Raises:
        ValueError: The delay is not more than 0.
        TypeError: It is neither a number nor a timedelta.
    """

    delay: float = 0

    def __init__(self, delay: Seconds) -> None:
        seconds = validation.check_seconds("delay", delay)
        if seconds == 0:
            raise ValueError("delay must be > 0: a job snoozed for no time would run without end")
        super().__init__(f"snoozed for {seconds} s")
        self.delay = seconds

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.delay,)


class Throttled(Exception):
    """Raise it in a handler when an API refuses a call for now: pauses a limit, for all workers.

    No job with this limit starts before the pause is over; that of the handler then runs again,
    which uses no retry. A job without this limit is delayed alone.

    Args:
        limit: The limit; if its key is made of fields, it is that of this job.
        retry_after: For how long, in seconds or as a timedelta. A longer pause is not shortened.

    Raises:
        ValueError: `retry_after` is not more than 0.
        TypeError: A value is of the wrong type.
    """

    limit: Limit
    retry_after: float

    def __init__(self, limit: Limit, retry_after: Seconds) -> None:
        if not isinstance(limit, Limit):
            raise TypeError(f"limit must be a Limit (got {limit!r})")
        seconds = validation.check_seconds("retry_after", retry_after)
        if seconds == 0:
            raise ValueError("retry_after must be > 0: a job without a pause would run without end")
        super().__init__(f"limit {limit.key!r} is paused for {seconds} s")
        self.limit, self.retry_after = limit, seconds

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.limit, self.retry_after)


class Fail(Exception):
    """Raise it in a handler to fail the job, without a retry.

    Args:
        message: What went wrong.
        group: The failure group; default: `<queue>-Fail`.

    Raises:
        TypeError: The message is no string.
        ValueError: The group is not a valid name.
    """

    message: str = ""
    group: str | None = None

    def __init__(self, message: str, *, group: str | None = None) -> None:
        self.message = _check_message(message, 'Fail(str(error), group="refused")')
        self.group = None if group is None else validation.check_name("group", group)
        super().__init__(self.message)


def _check_message(message: str, example: str) -> str:
    if not isinstance(message, str):
        raise TypeError(f"message must be a string (got {message!r}): write {example}")
    return validation.to_text(message)


class Parked(BaseException):
    """Ends a run that is to continue in another one; raised by methods of the job.

    `except Exception` doesn't catch it. Its job is released: that uses no retry, and is no failure.

    Args:
        message: Why.
        waits: What the job waits for, as it is stored; without any it is to run again at once.
    """

    waits: tuple[str, ...] = ()

    def __init__(self, message: str = "", *, waits: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.waits = waits
