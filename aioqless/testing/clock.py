"""A clock that stands still until it is moved."""

from __future__ import annotations

import time
from datetime import datetime

from aioqless import validation
from aioqless.validation import Seconds


class Clock:
    """A clock for a client's scripts: `Client(url, clock=Clock())`.

    Args:
        start: Its time, a datetime or in seconds since 1970; default: now.

    Raises:
        ValueError: `start` is out of range.
    """

    def __init__(self, start: float | datetime | None = None) -> None:
        if isinstance(start, datetime):
            start = validation.check_time("start", start)
        self.now = (
            time.time() if start is None else validation.check_number("start", start, least=0)
        )

    def __call__(self) -> float:
        """Return its time."""
        return self.now

    def move(self, by: Seconds) -> None:
        """Move it forward: delayed jobs are due, and locks that are not renewed have expired.

        Args:
            by: By how much, in seconds or as a timedelta.

        Raises:
            ValueError: It is negative.
        """
        self.now += validation.check_seconds("by", by)
