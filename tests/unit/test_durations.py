"""Durations are numbers of seconds or timedeltas; times are datetimes with a time zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any, cast

import pytest

from aioqless import Durability, Job, Key, Limit, Next, Retry, Settings, Unique, job
from aioqless.client.new_job import NewJob, encode_job
from aioqless.client.put_options import RECUR
from aioqless.client.recurring.schedule import Every
from aioqless.contrib.human_tasks import ReservationPolicy
from aioqless.handlers.retry_policy import RetryPolicy, exponential, fixed
from aioqless.testing import Clock
from aioqless.validation import check_seconds, check_time
from aioqless.worker.settings import ReconnectDelays

MINUTE = timedelta(minutes=1)
NAIVE = datetime(2030, 1, 1)
AWARE = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [(60, "60"), (0.5, "0.5"), (MINUTE, "60"), (timedelta(milliseconds=1500), "1.5")],
)
def test_duration_is_converted_to_seconds(duration: float | timedelta, seconds: str) -> None:
    assert repr(check_seconds("delay", duration)) == seconds


@pytest.mark.parametrize("value", ["60", None, True, AWARE])
def test_value_that_is_no_duration_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match=r"delay .*timedelta"):
        check_seconds("delay", value)


@pytest.mark.parametrize("value", [-1, timedelta(seconds=-1), float("nan"), float("inf")])
def test_duration_out_of_range_is_refused(value: float | timedelta) -> None:
    with pytest.raises(ValueError, match=r"delay must be finite and >= 0 \(got "):
        check_seconds("delay", value)


def test_time_is_converted_whatever_its_time_zone() -> None:
    there = AWARE.astimezone(timezone(timedelta(hours=9)))
    assert check_time("at", there) == check_time("at", AWARE) == AWARE.timestamp()


def test_options_of_put_take_timedeltas() -> None:
    def encode(duration: float | timedelta) -> object:
        unique, limit = Unique(Key("a"), ttl=duration), Limit(rate=(2, duration))
        options = {"delay": duration, "expires_in": duration, "unique": unique, "limits": [limit]}
        return encode_job(NewJob("a", jid="a", **cast(Any, options)), 1000)

    assert encode(MINUTE) == encode(60)


def test_at_is_stored_as_time_and_excludes_delay() -> None:
    assert encode_job(NewJob("a", at=AWARE), 1000)["at"] == AWARE.timestamp()
    with pytest.raises(ValueError, match="mutually exclusive"):
        encode_job(NewJob("a", at=AWARE, delay=1), 1000)
    with pytest.raises(ValueError, match="has no time zone"):
        encode_job(NewJob("a", at=NAIVE), 1000)
    with pytest.raises(TypeError, match="put takes a time as at="):
        encode_job(NewJob("a", delay=cast(Any, AWARE)), 1000)


def test_options_of_handlers_take_timedeltas() -> None:
    @job(
        timeout=MINUTE,
        result_ttl=timedelta(hours=1),
        every=MINUTE,
        limits=[Limit(rate=(1, MINUTE))],
    )
    async def handler(job: Job) -> None: ...

    assert (handler.timeout, handler.result_ttl) == (60, 3600)
    assert handler.recurrence and handler.recurrence.schedule == Every(60)
    assert handler.put_defaults["limits"] == (Limit(rate=(1, 60)),)


def test_backoffs_take_and_return_timedeltas() -> None:
    assert fixed(MINUTE)(0) == 60
    assert exponential(MINUTE, timedelta(hours=1), jitter=0)(1) == 120
    assert RetryPolicy(OSError, lambda _used: MINUTE).delay(OSError(), 0) == 60


def test_outcomes_take_timedeltas() -> None:
    assert Retry(delay=MINUTE).delay == 60
    assert Next("mail", delay=MINUTE) == Next("mail", delay=60)


def test_settings_take_timedeltas_and_are_read_as_seconds() -> None:
    settings = Settings(
        shutdown_timeout=MINUTE,
        kill_after=MINUTE,
        reconnect=ReconnectDelays(first=timedelta(seconds=1), longest=MINUTE),
    )
    assert settings == Settings(
        shutdown_timeout=60,
        kill_after=60,
        reconnect=ReconnectDelays(first=1, longest=60),
    )
    assert Durability(timeout=MINUTE).timeout == 60
    assert ReservationPolicy(limit=MINUTE).effective_limit(timedelta(seconds=5)) == 5
    with pytest.raises(ValueError, match=r"poll must be .* >= 0.01 \(got 0\)"):
        Settings(poll=timedelta())


def test_constraints_and_schedules_take_timedeltas() -> None:
    assert RECUR.check({"every": MINUTE}) == {"every": 60}
    assert Limit(rate=(3, MINUTE)) == Limit(rate=(3, 60))
    own = Unique((), debounce=MINUTE, debounce_max=MINUTE)
    assert own == Unique((), debounce=60, debounce_max=60)


def test_clock_takes_a_datetime_and_moves_by_a_timedelta() -> None:
    clock = Clock(AWARE)
    clock.move(MINUTE)
    assert clock() == AWARE.timestamp() + 60
