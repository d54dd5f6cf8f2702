"""Cron: the times of a cron expression in a time zone."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from aioqless import validation
from aioqless.client.put_options import CheckedOptions
from aioqless.hints import did_you_mean
from aioqless.lua import constant

NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
DAY = 86400
CLOCK_TOLERANCE = float(constant("CLOCK_TOLERANCE"))
FIELDS = "minute hour day month weekday, or a second before these"


@dataclass(frozen=True)
class Cron:
    """A cron expression in a time zone.

    It has five fields as in Debian's cron, or six, of which the first is the second. When clocks
    change, a job of a time of day runs once that day: a time that is skipped runs when the clocks
    have gone forward, a time that occurs twice runs the first time. An expression with a `*` in its
    minute or hour, or with six fields, follows elapsed time instead.

    A nickname such as `@daily` stands for the expression that it means.

    Attributes:
        expression: The expression.
        timezone: Name of the time zone.

    Raises:
        TypeError: One of them is not a string.
        ValueError: The expression can't be parsed or never matches, or there is no such time zone.
    """

    expression: str
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        find_zone(self.timezone)
        object.__setattr__(self, "expression", _expand(self.expression))
        _check(self.expression)

    @property
    def arguments(self) -> CheckedOptions:
        """The arguments of the commands that make a recurring job of it."""
        return {"expression": self.expression, "timezone": self.timezone}

    def next(self, after: float) -> float:
        """Return the first time later than `after`, both in seconds since 1970."""
        for tick in self._ticks(math.floor(after)):
            if tick > after:
                return tick
        raise ValueError(
            f"cron {self.expression!r} never comes after "
            f"{datetime.fromtimestamp(after, UTC):%Y-%m-%d}"
        )

    def all(self, first: float, until: float, most: int) -> list[float]:
        """Return its times of a period, earliest first.

        Args:
            first: One of its times, which is returned, too.
            until: End of the period.
            most: Maximum number of times.
        """
        ticks = [first]
        for tick in self._ticks(math.floor(first)):
            if tick > until or len(ticks) == most:
                break
            if tick > ticks[-1]:
                ticks.append(tick)
        return ticks

    def latest(self, first: float, until: float, most: int) -> list[float]:
        """Return the latest of its times of a period, earliest first.

        Args:
            first: One of its times, at which the period starts.
            until: End of the period.
            most: Maximum number of times.
        """
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

        zone = find_zone(self.timezone)
        times = CronSim(self.expression, datetime.fromtimestamp(start, zone), backwards)
        if zone is UTC or times.fixup_tz:
            for each in times:
                yield each.timestamp()
        else:  # CronSim loses times when clocks change by a part of an hour, or at midnight
            yield from self._elapsed_ticks(start, zone, -1 if backwards else 1)

    def _elapsed_ticks(self, start: int, zone: tzinfo, step: int) -> Iterator[float]:
        """Yield the times of an expression that follows elapsed time, between clock changes."""
        from cronsim import CronSim

        offset = _offset(zone, start)
        change: int | None = start
        while change is not None:
            local = datetime.fromtimestamp(start + offset, UTC)
            change = None
            for each in CronSim(self.expression, local, step < 0):
                tick = int(each.timestamp()) - offset
                if (change := _find_change(zone, offset, start, tick, step)) is not None:
                    start, offset = change - step, _offset(zone, change)
                    break
                yield tick
                start = tick


def _offset(zone: tzinfo, time: int) -> int:
    """Return by how many seconds the clocks of a zone are ahead of UTC."""
    return round((datetime.fromtimestamp(time, zone).utcoffset() or timedelta()).total_seconds())


def _find_change(zone: tzinfo, offset: int, start: int, end: int, step: int) -> int | None:
    """Return the first second behind `start`, up to `end`, at which the offset is another one.

    Clocks don't change back within a day.
    """
    while start != end:
        far = min(abs(end - start), DAY)
        if _offset(zone, start + step * far) != offset:
            seconds = range(1, far)
            first = bisect_left(
                seconds, True, key=lambda s: _offset(zone, start + step * s) != offset
            )
            return start + step * (first + 1)
        start += step * far
    return None


def right_tick(expression: str, timezone: str, tick: float, now: float) -> float | None:
    """Return when a recurring job is due whose next run stands still since a clock was ahead.

    None if `tick` is right, or can't be computed here. A time of the next minutes may just have
    run, before the clock was set back a little.
    """
    try:
        cron = Cron(expression, timezone)
        return cron.next(now) if tick > cron.next(now + CLOCK_TOLERANCE) else None
    except ValueError:
        return None


def find_zone(name: str) -> tzinfo:
    """Return a time zone by its name, such as `Europe/Paris`.

    Raises:
        TypeError: The name is not a string.
        ValueError: There is no such time zone on this machine.
    """
    return _find_zone(validation.check_name("timezone", name))


@lru_cache(1024)
def _find_zone(name: str) -> tzinfo:
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        hint = did_you_mean(name, available_timezones()) or ": it must be as 'Europe/Paris'"
        raise ValueError(f"timezone {name!r} is not known here{hint}") from None


def _expand(expression: str) -> str:
    """Return the expression that a nickname stands for; other clients read no nicknames."""
    if not isinstance(expression, str) or not expression.startswith("@"):
        return expression
    if (meant := NICKNAMES.get(expression.lower())) is None:
        raise ValueError(f"cron {expression!r} is none of {', '.join(NICKNAMES)}")
    return meant


@lru_cache(1024)
def _check(expression: str) -> None:
    from cronsim import CronSim, CronSimError

    validation.check_name("cron", expression)
    now = datetime.now(UTC)
    try:
        never = next(iter(CronSim(expression, now)), None) is None
    except CronSimError as error:
        never = str(error).endswith("day-of-month") and _matches_in_other_months(expression, now)
        if not never:
            raise ValueError(
                f"cron {expression!r} can't be read: {error}; its fields are {FIELDS}"
            ) from None
    if never:
        raise ValueError(f"cron {expression!r} never comes: there is no such day")


def _matches_in_other_months(expression: str, now: datetime) -> bool:
    from cronsim import CronSim, CronSimError

    fields = expression.split()
    try:
        CronSim(" ".join([*fields[:-2], "*", *fields[-1:]]), now)
    except CronSimError:
        return False
    return True
