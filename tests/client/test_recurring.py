"""Recurring jobs with cron expressions: creating, changing, pausing and listing."""

import re
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from aioqless import Client, InvalidData, NewJob, NoSuchJob, WrongState
from aioqless.errors import InvalidArgument


def clock(moment: float | None) -> str:
    """Return a controllable clock."""
    assert moment is not None
    return f"{datetime.fromtimestamp(moment, UTC):%H:%M:%S}"


async def test_recurring_job_is_due_at_the_times_of_its_cron_expression(client: Client) -> None:
    recurring = await client.queue("mail").recur(
        "Digest",
        {"day": "x"},
        cron="30 9 * * *",
        timezone="Asia/Tokyo",
        jid="digest",
        priority=-2,
        tags=["x"],
        retries=1,
        backlog=3,
    )
    assert (recurring.cron, recurring.timezone, recurring.interval) == (
        "30 9 * * *",
        "Asia/Tokyo",
        None,
    )
    assert (
        recurring.jid,
        recurring.data,
        recurring.priority,
        recurring.tags,
        recurring.retries,
    ) == ("digest", {"day": "x"}, -2, ["x"], 1)
    assert (
        recurring.backlog,
        recurring.coalesce,
        recurring.paused,
        recurring.declared,
        recurring.count,
    ) == (3, False, False, None, 0)
    now = await client.internals.store.now()
    assert (
        clock(recurring.next) == "00:30:00"
        and recurring.next is not None
        and now < recurring.next <= now + 86400
    )
    assert (
        repr(recurring) == "<RecurringJob digest Digest at '30 9 * * *' in Asia/Tokyo into 'mail'>"
    )
    assert await client.queue("mail").pop() == [], "a pop makes no instance of it"


async def test_instances_have_the_options_of_the_new_job(client: Client) -> None:
    recurring = await client.queue("mail").recur(
        NewJob("Digest", [1], priority=2), every=60, jid="digest"
    )
    assert (recurring.klass, recurring.data, recurring.priority, recurring.interval) == (
        "Digest",
        [1],
        2,
        60,
    )


@pytest.mark.parametrize("astray", [{"delay": 5}, {"depends": ["a"]}, {"context": {"trace": "1"}}])
async def test_options_of_single_jobs_are_refused(client: Client, astray: dict[str, Any]) -> None:
    [name] = astray
    with pytest.raises(TypeError, match=f"a recurring job has no option {name}: put has"):
        await client.queue("mail").recur(NewJob("Digest", **astray), every=60)
    assert await client.queues() == []


@pytest.mark.parametrize(
    ("options", "kind", "why"),
    [
        ({}, TypeError, "a recurring job has either every="),
        ({"cron": "0 0 31 2 *"}, ValueError, "cron '0 0 31 2 *' never comes: there is no such day"),
        ({"cron": "0 9 * * *", "offset": 5}, TypeError, "offset goes with every"),
        ({"every": 5, "offset": float("nan")}, ValueError, "offset must be finite and >= 0"),
    ],
)
async def test_invalid_schedule_is_refused_before_a_call(
    client: Client, options: dict[str, Any], kind: type[Exception], why: str
) -> None:
    with pytest.raises(kind, match=re.escape(why)):
        await client.queue("mail").recur("Digest", jid="r", **options)
    assert await client.queues() == []


async def test_recurring_job_without_jid_is_refused_so_that_no_deploy_adds_another(
    client: Client,
) -> None:
    for options in ({"every": 60}, {"cron": "@daily", "jid": None}):
        with pytest.raises(TypeError, match="recur needs a jid, such as jid='nightly-digest'"):
            await client.recur("Digest", **options)
    assert await client.queues() == []
    assert [each async for each in client.recurring.all()] == []


async def test_changing_the_cron_expression_changes_the_next_time(client: Client) -> None:
    recurring = await client.queue("mail").recur("Digest", cron="30 9 * * *", jid="r")
    await recurring.update(cron="15 6 * * *", timezone=ZoneInfo("UTC"), queue="slow")
    assert (clock(recurring.next), recurring.queue) == ("06:15:00", "slow")
    await recurring.update(timezone="Asia/Tokyo")
    assert clock(recurring.next) == "21:15:00"
    with pytest.raises(ValueError, match="never comes"):
        await recurring.update(cron="0 0 31 2 *")
    with pytest.raises(
        InvalidArgument, match="is not an option of a recurring job that can be changed"
    ):
        await recurring.update(every=60)
    assert (await recurring.refresh()).cron == "15 6 * * *"


async def test_recurring_job_accepts_data_at_the_clients_limit(
    redis_url: str, namespace: str
) -> None:
    async with Client(redis_url, namespace=namespace, max_data=100) as small:
        made = await small.queue("mail").recur("Digest", every=3600, jid="r")
        read = await small.recurring.get(made.jid)
        (listed,) = [each async for each in small.recurring.all()]
        for recurring in (made, read, listed):
            assert recurring is not None
            await recurring.update(data="x" * 98)
            with pytest.raises(InvalidData, match="at most 100 bytes, the client's max_data"):
                await recurring.update(data="x" * 99)


async def test_run_now_puts_an_ordinary_instance(client: Client) -> None:
    recurring = await client.queue("mail").recur(
        "Digest", {"a": []}, cron="0 9 * * *", jid="digest", tags=["x"]
    )
    due = recurring.next
    assert (await recurring.run_now(), await recurring.run_now(), recurring.count) == (
        "digest-1",
        "digest-2",
        2,
    )
    jobs = await client.queue("mail").pop(5)
    assert [(job.jid, job.klass, job.raw_data, job.tags) for job in jobs] == [
        (f"digest-{n}", "Digest", '{"a":[]}', ["x"]) for n in (1, 2)
    ]
    assert (await recurring.refresh()).next == due
    await recurring.cancel()
    for act in (recurring.run_now, recurring.pause, recurring.resume):
        with pytest.raises(NoSuchJob):
            await act()


async def test_recurring_jobs_are_listed_page_by_page(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aioqless.client.recurring.recurring_jobs.PAGE", 3)
    for number in range(8):
        await client.queue(f"q{number % 2}").recur(
            "Digest", every=60, offset=60 + number, jid=f"every-{number}"
        )
        await client.queue("mail").recur("Digest", cron=f"{number} 9 * * *", jid=f"cron-{number}")
    for jid in ("every-0", "cron-0"):
        paused = await client.recurring.get(jid)
        assert paused is not None
        await paused.pause()
    listed = [each async for each in client.recurring.all()]
    assert len({each.jid for each in listed}) == len(listed) == 16
    assert [each.jid for each in listed if each.paused] == ["every-0", "cron-0"]
    assert [each.jid for each in listed[9:]] == [
        f"every-{number}" for number in (2, 4, 6, 1, 3, 5, 7)
    ]


async def test_recurring_job_that_has_ended_goes_on_with_other_limits(client: Client) -> None:
    mail = client.queue("mail")
    recurring = await mail.recur("Digest", cron="@daily", jid="digest", until=1, max_runs=3)
    assert recurring.ended and recurring.upcoming() == [] and "ended" in repr(recurring)
    await recurring.update(until=None)
    assert not recurring.ended and recurring.until is None and len(recurring.upcoming(9)) == 3
    await recurring.update(until=datetime(2020, 1, 1, tzinfo=UTC))
    assert recurring.ended
    with pytest.raises(WrongState, match="has ended"):
        await recurring.resume()
    assert [each.jid async for each in client.recurring.all()] == ["digest"]
