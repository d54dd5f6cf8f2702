"""A clock that stands still until it is moved."""

from __future__ import annotations

import time

from aioqless import validation


class Clock:
    """The time that a client's scripts are told: `Client(url, clock=Clock())`. Seconds since 1970,
    from `start` or now on."""

    def __init__(self, start: float | None = None) -> None:
        self.now = (
            time.time() if start is None else validation.checked_number("start", start, least=0)
        )

    def __call__(self) -> float:
        return self.now

    def move(self, seconds: float) -> None:
        """Let so many seconds pass: what is delayed until then is due, and a lock that isn't
        renewed has lapsed."""
        self.now += validation.checked_number("seconds", seconds, least=0)
