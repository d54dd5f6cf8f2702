"""A clock that stands still until it is moved."""

from __future__ import annotations

import time

from aioqless import validation


class Clock:
    """A clock for a client's scripts: `Client(url, clock=Clock())`.

    Args:
        start: Its time, in seconds since 1970; default: now.

    Raises:
        ValueError: `start` is out of range.
    """

    def __init__(self, start: float | None = None) -> None:
        self.now = (
            time.time() if start is None else validation.check_number("start", start, least=0)
        )

    def __call__(self) -> float:
        """Return its time."""
        return self.now

    def move(self, seconds: float) -> None:
        """Move it forward: delayed jobs are due, and locks that are not renewed have expired.

        Args:
            seconds: By how much.

        Raises:
            ValueError: It is negative.
        """
        self.now += validation.check_number("seconds", seconds, least=0)
