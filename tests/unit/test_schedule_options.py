"""Schedule options of the decorator."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from aioqless import Handler, InvalidData, Job, Settings, job
from aioqless.client.recurring.cron import Cron
from aioqless.client.recurring.schedule import Every


async def _digest(job: Job, day: str = "today") -> None: ...


async def _mail(job: Job, to: str) -> None: ...


async def _counted(job: Job[int]) -> None: ...


def _declared(**options: Any) -> Handler[...]:
    return job(**options)(_digest)


def test_schedule_options_make_a_recurring_job() -> None:
    hourly = _declared(every=3600).recurrence
    assert hourly is not None
    assert (hourly.schedule, hourly.data, hourly.limits["backlog"]) == (Every(3600), {}, None)
    daily = _declared(
        cron="0 9 * * *", timezone="Europe/Paris", data={"day": "x"}, backlog=2
    ).recurrence
    assert daily is not None
    assert (daily.schedule, daily.data, daily.limits["backlog"]) == (
        Cron("0 9 * * *", "Europe/Paris"),
        {"day": "x"},
        2,
    )
    assert _declared().recurrence is None


def test_time_zone_may_be_a_zone_info() -> None:
    daily = _declared(cron="0 9 * * *", timezone=ZoneInfo("Europe/Paris")).recurrence
    assert daily and daily.schedule == Cron("0 9 * * *", "Europe/Paris")


def test_limits_and_jitter_are_read_as_seconds() -> None:
    recurrence = _declared(
        every=60, until=datetime(2030, 1, 1, tzinfo=UTC), max_runs=3, jitter=timedelta(minutes=1)
    ).recurrence
    assert recurrence and recurrence.limits == {
        "ends": 1893456000,
        "max_runs": 3,
        "jitter": 60,
        "backlog": None,
    }


@pytest.mark.parametrize(("nickname", "meant"), [("@hourly", "0 * * * *"), ("@Daily", "0 0 * * *")])
def test_nickname_stands_for_its_expression(nickname: str, meant: str) -> None:
    assert Cron(nickname) == Cron(meant) and Cron(nickname).expression == meant


@pytest.mark.parametrize(
    ("options", "kind", "why"),
    [
        ({"every": 60, "max_runs": 0}, ValueError, "max_runs must be an integer >= 1"),
        ({"every": 60, "until": "2030"}, TypeError, "until"),
        ({"max_runs": 3}, TypeError, "max_runs is for a recurring job"),
        ({"every": 60, "data": {"day": 5}}, InvalidData, "Expected `str`, got `int`"),
        ({"data": 5}, TypeError, "data is for a recurring job: pass every= or cron=, too"),
    ],
)
def test_invalid_schedule_is_refused_by_the_decorator(
    options: dict[str, Any], kind: type[Exception], why: str
) -> None:
    with pytest.raises(kind, match=re.escape(why)):
        _declared(**options)


def test_required_data_of_a_recurring_job_must_be_given() -> None:
    with pytest.raises(
        TypeError,
        match="a recurring job needs the data= that its function takes: missing a required "
        "argument: 'to'",
    ):
        job(every=60)(_mail)
    with pytest.raises(InvalidData):
        job(every=60)(_counted)
    assert job(every=60, data=5)(_counted).recurrence is not None


def test_scheduler_setting_is_a_boolean() -> None:
    with pytest.raises(TypeError, match=r"scheduler must be True or False \(got 'no'\)"):
        Settings(scheduler="no")  # type: ignore[arg-type]
