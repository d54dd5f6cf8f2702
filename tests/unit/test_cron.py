"""Times of cron expressions, and invalid expressions."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from aioqless.client.put_options import RECUR
from aioqless.client.recurring.cron import Cron
from aioqless.client.recurring.schedule import Every, make_schedule


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
