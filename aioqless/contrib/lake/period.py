"""Periods of days, and the texts by which options name them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

_DAY: Final = timedelta(days=1)
_MAX_DAYS: Final = 36_500


@dataclass(frozen=True)
class Period:
    """Days in UTC, the first and the last included."""

    first: date
    last: date

    @property
    def before(self) -> Period:
        """The period of the same length that ends the day before."""
        return Period(self.first - (self.last - self.first) - _DAY, self.first - _DAY)

    def __contains__(self, day: object) -> bool:
        return isinstance(day, date) and self.first <= day <= self.last

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first} to {self.last}"


ALL_DAYS: Final = Period(date.min, date.max)


def parse_period(since: str, until: str = "today") -> Period:
    """Return the days from `since` to `until`.

    Args:
        since: `2026-11-21`, `today`, `yesterday`, or `7d`, which is today and the six days before.
        until: The last day, in the same form except that `7d` is the day six days ago.

    Raises:
        ValueError: One of them is no day, or the last day is before the first.
    """
    period = Period(parse_day("since", since), parse_day("until", until))
    if period.last < period.first:
        raise ValueError(f"--until {period.last} is before --since {period.first}")
    return period


def parse_day(option: str, text: str) -> date:
    """Return the day that the text of an option names; see `parse_period`."""
    today = datetime.now(UTC).date()
    if text in ("today", "yesterday"):
        return today - (_DAY if text == "yesterday" else timedelta())
    if re.fullmatch(r"[1-9][0-9]{0,4}d", text, re.ASCII) and int(text[:-1]) < _MAX_DAYS:
        return today - timedelta(days=int(text[:-1]) - 1)
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"--{option} {text!r} is no day; give 2026-11-21, today, yesterday or 7d (days are UTC)"
        ) from None
