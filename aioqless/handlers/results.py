"""What a handler returns or raises to decide its job's outcome: Next, Retry, Snooze and Fail."""

from __future__ import annotations

from dataclasses import dataclass

from aioqless import validation
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


class Retry(Exception):
    """Raise it in a handler to retry the job; if it has no retries left, it fails.

    Args:
        delay: Time before it runs again, in seconds or as a timedelta.
        group: The failure group if no retry is left; default: `failed-retries-<queue>`.
        message: The message of that failure.

    Raises:
        ValueError: A value is out of range.
    """

    delay: float = 0
    group: str | None = None
    message: str | None = None

    def __init__(
        self, delay: Seconds = 0, group: str | None = None, message: str | None = None
    ) -> None:
        self.delay = validation.check_seconds("delay", delay)
        super().__init__(message or f"retry after {self.delay} s")
        self.group = None if group is None else validation.check_name("group", group)
        self.message = None if message is None else validation.to_text(message)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.delay, self.group, self.message)


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


class Fail(Exception):
    """Raise it in a handler to fail the job in a group of your choice.

    Args:
        group: The failure group.
        message: What went wrong.

    Raises:
        ValueError: The group is not a valid name.
    """

    group: str = ""
    message: str = ""

    def __init__(self, group: str, message: str = "") -> None:
        super().__init__(message or group)
        self.group = validation.check_name("group", group)
        self.message = validation.to_text(message)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.group, self.message)
