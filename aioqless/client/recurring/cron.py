"""Cron expressions with time zones: which times they mean."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from aioqless import validation

FIELDS = "minute hour day month weekday, or a second before these"


@dataclass(frozen=True)
class Cron:
    """A cron expression in a time zone. Raises ValueError, and TypeError, for one that can't be
    read or never comes.

    Five fields as in Debian's cron, or six, of which the first is the second. When clocks change, a
    job of a time of day runs once that day: one that is skipped comes when the clocks have gone
    forward, one that comes twice counts the first time. What has a `*` in its minute or hour, or
    six fields, goes by the time that really passes."""

    expression: str
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        zone_of(self.timezone)
        _checked(self.expression)

    def next(self, after: float) -> float:
        """The first time later than `after`, both in seconds since 1970."""
        for tick in self._ticks(math.floor(after)):
            if tick > after:
                return tick
        raise ValueError(
            f"cron {self.expression!r} never comes after {datetime.fromtimestamp(after, UTC):%Y-%m-%d}"
        )

    def all(self, first: float, until: float, most: int) -> list[float]:
        """`first`, which is one of its times, and those that follow up to `until`: at most so
        many."""
        ticks = [first]
        for tick in self._ticks(math.floor(first)):
            if tick > until or len(ticks) == most:
                break
            if tick > ticks[-1]:
                ticks.append(tick)
        return ticks

    def latest(self, first: float, until: float, most: int) -> list[float]:
        """The last so many of its times from `first`, which is one of them, up to `until`."""
        if len(few := self.all(first, until, most + 1)) <= most:
            return few
        ticks: list[float] = []
        for tick in self._ticks(math.floor(until) + 1, backwards=True):
            if tick <= first or len(ticks) == most:
                break
            if tick <= until and tick not in ticks[-1:]:
                ticks.append(tick)
        return ([first] if len(ticks) < most else []) + ticks[::-1]

    def _ticks(self, start: int, *, backwards: bool = False) -> Iterator[float]:
        from cronsim import CronSim

        for moment in CronSim(
            self.expression, datetime.fromtimestamp(start, zone_of(self.timezone)), backwards
        ):
            yield moment.timestamp()


def zone_of(name: str) -> tzinfo:
    """The time zone of this name, as in `Europe/Paris`. Raises ValueError for one that isn't known
    here, and TypeError."""
    return _zone(validation.check_name("timezone", name))


@lru_cache(1024)
def _zone(name: str) -> tzinfo:
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(
            f"timezone {name!r} is not known here: it must be a name such as 'Europe/Paris'"
        ) from None


@lru_cache(1024)
def _checked(expression: str) -> None:
    from cronsim import CronSim, CronSimError

    validation.check_name("cron", expression)
    now = datetime.now(UTC)
    try:
        never = next(iter(CronSim(expression, now)), None) is None
    except CronSimError as error:
        never = str(error).endswith("day-of-month") and _comes_in_other_months(expression, now)
        if not never:
            raise ValueError(
                f"cron {expression!r} can't be read: {error}; its fields are {FIELDS}"
            ) from None
    if never:
        raise ValueError(f"cron {expression!r} never comes: there is no such day")


def _comes_in_other_months(expression: str, now: datetime) -> bool:
    from cronsim import CronSim, CronSimError

    fields = expression.split()
    try:
        CronSim(" ".join([*fields[:-2], "*", *fields[-1:]]), now)
    except CronSimError:
        return False
    return True
