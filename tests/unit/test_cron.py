"""Times of cron expressions, and invalid expressions."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from aioqless.client.put_options import RECUR
from aioqless.client.recurring.cron import Cron
from aioqless.client.recurring.schedule import Every, make_schedule

HALF_PAST_TWO = Cron("30 2 * * *", "Europe/Paris")
BEFORE_SPRING, BEFORE_AUTUMN = (
    "2026-03-27 12:00",
    "2026-10-23 12:00",
)  # clocks change on March 29 and October 25


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def next_times(cron: Cron, after: str, count: int) -> list[str]:
    """Return the next times, in UTC."""
    times, now = [], at(after)
    for _ in range(count):
        now = cron.next(now)
        times.append(f"{datetime.fromtimestamp(now, UTC):%m-%d %H:%M:%S}".removesuffix(":00"))
    return times


def test_time_of_day_is_in_its_time_zone() -> None:
    assert next_times(Cron("0 9 * * mon-fri", "Asia/Tokyo"), "2026-01-02 00:00", 2) == [
        "01-05 00:00",
        "01-06 00:00",
    ]
    assert next_times(Cron("0 9 * * *"), "2026-01-02 09:00", 1) == ["01-03 09:00"], (
        "later than, not at"
    )
    assert next_times(Cron("0 9 * * *"), "2026-01-02 08:59:59.999", 1) == ["01-02 09:00"]


def test_first_of_six_fields_is_the_second() -> None:
    assert next_times(Cron("*/20 * * * * *"), "2026-01-01 00:00:01", 3) == [
        "01-01 00:00:20",
        "01-01 00:00:40",
        "01-01 00:01",
    ]


def test_time_skipped_by_daylight_saving_is_due_after_the_change() -> None:
    assert next_times(HALF_PAST_TWO, BEFORE_SPRING, 3) == [
        "03-28 01:30",
        "03-29 01:00",
        "03-30 00:30",
    ]
    assert next_times(Cron("0,30 2 * * *", "Europe/Paris"), "2026-03-29 00:00", 2) == [
        "03-29 01:00",
        "03-30 00:00",
    ], "both at once: one"


def test_time_repeated_by_daylight_saving_is_due_once() -> None:
    assert next_times(HALF_PAST_TWO, BEFORE_AUTUMN, 3) == [
        "10-24 00:30",
        "10-25 00:30",
        "10-26 01:30",
    ]
    assert next_times(HALF_PAST_TWO, "2026-10-25 01:10", 1) == ["10-26 01:30"], (
        "reckoned in the hour that comes again"
    )


def test_hourly_schedule_follows_elapsed_time_across_daylight_saving() -> None:
    assert next_times(Cron("30 * * * *", "Europe/Paris"), "2026-10-24 23:45", 3) == [
        "10-25 00:30",
        "10-25 01:30",
        "10-25 02:30",
    ]
    assert next_times(Cron("30 * * * *", "Europe/Paris"), "2026-03-29 00:45", 2) == [
        "03-29 01:30",
        "03-29 02:30",
    ]


def test_latest_missed_times_and_all_are_listed() -> None:
    hourly = Cron("0 * * * *")
    first, until = at("2026-01-01 00:00"), at("2026-01-01 05:30")
    hours = [first + 3600 * hour for hour in range(6)]
    assert hourly.latest(first, until, 1) == hours[-1:]
    assert hourly.latest(first, until, 3) == hours[-3:]
    assert hourly.latest(first, until, 9) == hours
    assert hourly.latest(first, first, 3) == [first]
    assert hourly.all(first, until, 4) == hours[:4]
    assert hourly.all(first, until, 9) == hours
    assert hourly.all(first, first + 0.5, 9) == [first]


def test_missed_times_are_right_within_the_repeated_hour() -> None:
    saturday, sunday, now = at("2026-10-24 00:30"), at("2026-10-25 00:30"), at("2026-10-25 01:10")
    assert HALF_PAST_TWO.latest(saturday, now, 5) == [saturday, sunday]
    assert HALF_PAST_TWO.latest(sunday, now, 1) == [sunday]


@settings(deadline=None)
@given(some.integers(at("2025-01-01 00:00").__int__(), at("2028-01-01 00:00").__int__()),
    some.sampled_from([
    "30 2 * * *", "*/7 * * * *", "0 */5 * * *", "0 0 29 2 *", "15 10 * * 5L", "59 23 LW * *",
    "*/40 30 1-3 * * *",
]), some.sampled_from(["UTC", "Europe/Paris", "America/St_Johns", "Pacific/Apia",
    "Australia/Lord_Howe"]))  # fmt: skip
def test_next_time_is_later_and_skips_none(now: int, expression: str, timezone: str) -> None:
    cron = Cron(expression, timezone)
    first = cron.next(now)
    second = cron.next(first)
    assert now < first < second
    assert cron.next((now + first) / 2) == first
    assert cron.all(first, second, 5) == [first, second]
    assert cron.latest(first, second, 1)[0] in (first, second)
    assert cron.latest(first, second, 2) == [first, second]


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("0 0 31 2 *", "cron '0 0 31 2 \\*' never comes: there is no such day"),
        ("0 0 30 feb *", "never comes"),
        ("0 0 0 31 4,6,9,11 *", "never comes"),
        (
            "61 * * * *",
            "cron '61 \\* \\* \\* \\*' can't be read: Bad minute; its fields are minute hour day "
            "month weekday",
        ),
        ("* * * 13 *", "Bad month"),
        ("* * 32 2 *", "Bad day-of-month"),
        ("* * * *", "Wrong number of fields"),
        ("@reboot", "is none of @hourly, @daily"),
        ("*/0 * * * *", "Bad minute"),
        ("", "cron must not be empty"),
        ("0 9\n* * *", "control character"),
        ("*" * 600, "at most 512"),
    ],
)
def test_invalid_and_never_due_expressions_are_refused(expression: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Cron(expression)


@pytest.mark.parametrize(
    "timezone", ["Europe/Pari", "Europe", "/etc/passwd", "../etc/passwd", "paris time", ""]
)
def test_unknown_time_zone_is_refused(timezone: str) -> None:
    with pytest.raises(ValueError, match=r"^timezone "):
        Cron("* * * * *", timezone)


@settings(deadline=None)
@given(some.text(alphabet="0123456789*/,-#LWmonfeb? ", max_size=20))
def test_any_text_is_accepted_or_raises_value_error(expression: str) -> None:
    try:
        assert Cron(expression).next(1e9) > 1e9
    except ValueError as refused:
        assert str(refused).startswith("cron ")


@pytest.mark.parametrize(
    ("options", "kind", "why"),
    [
        ({}, TypeError, "either every=, in seconds or as a timedelta, or cron="),
        (
            {"every": 5, "cron": "* * * * *"},
            TypeError,
            "either every=, in seconds or as a timedelta, or cron=",
        ),
        ({"every": 0}, ValueError, "every must be more than 0 seconds"),
        ({"every": -1}, ValueError, r"every must be .* \(got -1\)"),
        ({"every": "1h"}, TypeError, "every must be a number"),
        ({"every": 5, "timezone": "UTC"}, TypeError, "timezone goes with cron"),
        ({"cron": 5}, TypeError, r"cron must be a string \(got 5\)"),
        ({"cron": "* * * * *", "timezone": 2}, TypeError, "timezone must be a name such as"),
    ],
)
def test_invalid_schedule_is_refused(
    options: dict[str, Any], kind: type[Exception], why: str
) -> None:
    with pytest.raises(kind, match=why):
        make_schedule(RECUR.check(options))


def test_schedule_is_an_interval_or_a_cron_expression() -> None:
    assert make_schedule({"every": 5}) == Every(5)
    assert make_schedule({"cron": "0 9 * * *"}) == Cron("0 9 * * *", "UTC")
    assert make_schedule({"cron": "0 9 * * *", "timezone": "Asia/Tokyo"}) == Cron(
        "0 9 * * *", "Asia/Tokyo"
    )


def test_backlog_is_limited_for_cron_expressions() -> None:
    for backlog in (None, 0, 5000):
        assert make_schedule(RECUR.check({"every": 5, "backlog": backlog})) == Every(5)
    with pytest.raises(
        ValueError,
        match=r"backlog 1001 is more than 1000, the most with a cron expression; "
        r"0 makes up for all",
    ):
        make_schedule(RECUR.check({"cron": "* * * * *", "backlog": 1001}))
    with pytest.raises(ValueError, match=r"backlog must be .* \(got -1\)"):
        RECUR.check({"every": 5, "backlog": -1})
