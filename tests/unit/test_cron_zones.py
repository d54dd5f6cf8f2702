"""Times of cron expressions around every change of clocks of a year, against a plain search."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import pytest

from aioqless.client.recurring.cron import Cron

MINUTE, HOUR, DAY, WEEK = 60, 3600, 86400, 604800
YEAR = range(
    int(datetime(2027, 1, 1, tzinfo=UTC).timestamp()),
    int(datetime(2028, 1, 1, tzinfo=UTC).timestamp()),
)


def local(zone: ZoneInfo, time: int) -> datetime:
    return datetime.fromtimestamp(time, zone)


def find_changes(zone: ZoneInfo) -> list[tuple[int, timedelta, timedelta]]:
    """Return when clocks change in the year, and their offsets before and after."""
    offsets = [local(zone, time).utcoffset() for time in range(YEAR.start, YEAR.stop, WEEK)]
    changes = []
    for week, (before, after) in enumerate(pairwise(offsets)):
        if before != after:
            minutes = range(YEAR.start + week * WEEK, YEAR.start + (week + 1) * WEEK + 1, MINUTE)
            found = bisect_left(
                minutes,
                True,
                key=lambda time: local(zone, time).utcoffset() != before,
            )
            assert before is not None and after is not None
            changes.append((minutes[found], before, after))
    return changes


def group_zones() -> dict[str, list[tuple[int, timedelta, timedelta]]]:
    """Return a zone of each kind of changes: the others' clocks change at the same moments."""
    kinds = {
        tuple(changes): name
        for name in sorted(available_timezones())
        if (changes := find_changes(ZoneInfo(name)))
    }
    return {name: list(changes) for changes, name in kinds.items()}


ZONES = group_zones()


def expressions(hours: set[int], day: datetime) -> dict[str, Callable[[datetime], bool]]:
    """Return expressions with a `*`, and what they mean, for hours around a change."""
    found: dict[str, Callable[[datetime], bool]] = {
        "*/10 * * * *": lambda at: at.minute % 10 == 0,
        "30 * * * *": lambda at: at.minute == 30,
        "0 * * * *": lambda at: at.minute == 0,
        "15,45 */2 * * *": lambda at: at.minute in (15, 45) and at.hour % 2 == 0,
    }
    for hour in hours:
        found[f"*/20 {hour} * * *"] = lambda at, hour=hour: (  # type: ignore[misc]
            at.minute % 20 == 0 and at.hour == hour
        )
        found[f"*/5 {hour} {day.day} {day.month} *"] = lambda at, hour=hour: (  # type: ignore[misc]
            at.minute % 5 == 0 and (at.month, at.day, at.hour) == (day.month, day.day, hour)
        )
    return found


def search(means: Callable[[datetime], bool], zone: ZoneInfo, period: range) -> list[int]:
    """Return the minutes of a period whose local time an expression means."""
    return [time for time in period if means(local(zone, time))]


@pytest.mark.parametrize("name", ZONES)
def test_times_around_a_clock_change_are_those_of_a_search_of_all_minutes(name: str) -> None:
    zone = ZoneInfo(name)
    for change, _, _ in ZONES[name]:
        period = range(change - 26 * HOUR, change + 26 * HOUR, MINUTE)
        times = {local(zone, change + minutes * MINUTE) for minutes in range(-90, 91, 10)}
        for day in {time.date(): time for time in times}.values():
            for expression, means in expressions({time.hour for time in times}, day).items():
                cron, expected = Cron(expression, name), search(means, zone, period)
                after = period.start - 1
                found = []
                while (after := int(cron.next(after))) < period.stop:
                    found.append(after)
                assert found == expected, expression
                if expected:
                    first, last = expected[0], period.stop - 1
                    assert cron.latest(first, last, 3) == expected[-3:], expression
                    assert cron.all(first, last, 1000) == expected, expression


@pytest.mark.parametrize("name", ZONES)
def test_time_of_day_around_a_clock_change_comes_once(name: str) -> None:
    zone = ZoneInfo(name)
    for change, before, after in ZONES[name]:
        for minutes in range(-75, 76, 15):
            naive = datetime.fromtimestamp(change, UTC).replace(tzinfo=None) + max(before, after)
            naive += timedelta(minutes=minutes)
            first = naive.replace(tzinfo=zone, fold=0).timestamp()
            if local(zone, int(first)).replace(tzinfo=None) != naive:
                first = change  # a time that is skipped
            cron = Cron(f"{naive.minute} {naive.hour} {naive.day} {naive.month} *", name)
            assert cron.next(change - 2 * DAY) == first
            assert cron.next(first) > first + 300 * DAY, "once a year"
