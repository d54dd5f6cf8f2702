"""Counts that callers request are limited to a thousand."""

from typing import Any

import pytest

from aioqless.contrib.human_tasks.generated_commands import HumanTasksCommands
from aioqless.contrib.job_filter import JobFilter
from tests.lua.bounds.many_jobs import FAILURE, MANY, MOST, Gauge, bind, count, crowd, is_sound
from tests.lua.story import Story


@pytest.mark.parametrize("wanted", [1, 10, 1_000, 100_000])
async def test_pop_returns_the_requested_count_up_to_a_thousand(
    story: Story, gauge: Gauge, wanted: int
) -> None:
    size = min(MANY, 20 * wanted)
    await crowd(story, size, "q:mail-work", "waiting", step=-1e-6)
    seen: list[str] = []
    while jobs := await gauge("pop", queue="mail", worker="ann", count=wanted, now=10):
        assert len(jobs) <= min(wanted, MOST)
        seen += [job["jid"] for job in jobs]
    assert len(seen) == len(set(seen)) == size
    assert gauge.most <= 150 + 13 * min(wanted, MOST)
    assert await is_sound(story, 10)


async def test_jobs_with_long_histories_are_popped_at_a_bounded_cost(
    story: Story, gauge: Gauge
) -> None:
    await crowd(story, MOST, "q:mail-work", "waiting")
    for number in range(MOST):
        events = ['[1,"popped",{"worker":"ann"}]'] * 100
        await story.change("RPUSH", f"j:j{number}-history", *events)
    jobs = await gauge("pop", queue="mail", worker="ann", count=MOST, now=10)
    assert [
        (len(job["history"]), job["history"][-1]["when"], job["history_total"]) for job in jobs
    ] == [(10, 10, 100)] * MOST
    assert len((await gauge("get", jid="j0"))["history"]) == 100
    assert gauge.most <= 15 * MOST


async def test_reservation_after_many_skipped_jobs_has_a_bounded_cost(
    story: Story, gauge: Gauge
) -> None:
    await crowd(story, MANY, "q:mail-work", "waiting", step=-1e-6)
    for number in range(300):
        await story.change("ZADD", "x:skipped:ada", number, f"j{number}")
    given = {"queue": "mail", "person": "ada", "worker": "ada", "limit": 60}
    assert (await gauge("reserve", **given, now=10))["job"][
        "jid"
    ] == "j201"  # each of the first 201 was set aside
    await HumanTasksCommands(story.store).skip(jid="j201", person="ada", worker="ada", now=11)
    assert await count(story, "x:skipped:ada") == 200
    assert gauge.most <= 150 + 5 * 201
    assert await count(story, "q:mail-work") == MANY
    assert await is_sound(story, 12)


@pytest.mark.parametrize("wanted", [1, 1_000, 100_000])
async def test_peek_returns_the_requested_count_up_to_a_thousand(
    story: Story, gauge: Gauge, wanted: int
) -> None:
    await crowd(story, MANY, "q:mail-work", "waiting", step=-1e-6)
    for offset in (0, MANY - 500, MANY):
        shown = await gauge("peek", queue="mail", count=wanted, now=10, offset=offset)
        assert len(shown) == min(wanted, MOST, MANY - offset)
    assert gauge.most <= 50 + 10 * min(wanted, MOST)


@pytest.mark.parametrize("wanted", [1, 1_000, 100_000])
async def test_unfail_moves_the_requested_count_up_to_a_thousand(
    story: Story, gauge: Gauge, wanted: int
) -> None:
    size = min(MANY, 20 * wanted)
    await crowd(story, size, "f:typo", "failed", failure=FAILURE)
    await story.change("SADD", "failures", "typo")
    moved = 0
    while done := await gauge("unfail", queue="mail", group="typo", count=wanted, now=10):
        assert done <= min(wanted, MOST)
        moved += done
    assert moved == await count(story, "q:mail-work") == size
    assert gauge.most <= 50 + 10 * min(wanted, MOST)
    assert await is_sound(story, 10)


@pytest.mark.parametrize(
    ("command", "arguments", "place", "state"),
    [
        (("jobs",), {"state": "waiting", "queue": "mail", "now": 1}, "q:mail-work", "waiting"),
        (("jobs",), {"state": "running", "queue": "mail", "now": 0}, "q:mail-locks", "running"),
        (("jobs",), {"state": "stalled", "queue": "mail", "now": 1e9}, "q:mail-locks", "running"),
        (
            ("jobs",),
            {"state": "scheduled", "queue": "mail", "now": 0},
            "q:mail-scheduled",
            "scheduled",
        ),
        (("jobs",), {"state": "depends", "queue": "mail", "now": 0}, "q:mail-depends", "depends"),
        (("jobs",), {"state": "complete", "now": 0}, "completed", "complete"),
        (("tag", "get"), {"tag": "x"}, "t:x", "waiting"),
        (("failed",), {"group": "typo"}, "f:typo", "failed"),
    ],
)
async def test_listing_has_at_most_a_thousand_per_page(
    story: Story,
    gauge: Gauge,
    command: tuple[str, ...],
    arguments: dict[str, Any],
    place: str,
    state: str,
) -> None:
    await crowd(story, MANY, place, state, score=1, step=1)
    for size, offset, listed in (
        (None, 0, 25),
        (100_000, 0, MOST),
        (100_000, MANY - 10, 10),
        (100_000, MANY, 0),
    ):
        page = await gauge(*command, **arguments, offset=offset, count=size)
        assert len(page if isinstance(page, list) else page["jobs"]) == listed
    assert gauge.most <= 20 + 10 * MOST


async def test_queues_workers_and_groups_are_listed_in_bounded_pages(
    story: Story, gauge: Gauge
) -> None:
    for first in range(0, MANY, 1_000):
        names = [f"n{number}" for number in range(first, first + 1_000)]
        scored = [part for name in names for part in (1, name)]
        await story.change("ZADD", "queues", *scored)
        await story.change("ZADD", "workers", *scored)
        await story.change("SADD", "failures", *names)
    assert len(await gauge("queues", now=1)) == MOST
    assert len(await gauge("queues", now=1, offset=MANY - 10, count=100_000)) == 10
    assert len(await gauge("workers", now=1)) == MOST
    assert len(await gauge("failed")) == min(MANY, 10_000)
    assert gauge.most <= 50 + 10 * MOST


async def test_job_lists_a_thousand_dependents_and_their_total(story: Story, gauge: Gauge) -> None:
    await story.put("hub", 0)
    await crowd(story, MANY, "q:mail-depends", "depends")
    await bind(story, MANY, dependents=True)
    job = await gauge("get", jid="hub")
    assert (len(job["dependents"]), job["dependents_total"]) == (MOST, MANY)
    assert gauge.most <= 10


async def test_clear_handles_a_bounded_number_of_jobs_per_call(story: Story, gauge: Gauge) -> None:
    await crowd(story, MANY, "q:mail-work", "waiting", prefix="w", step=-1e-6)
    await crowd(story, MANY, "q:mail-depends", "depends")
    await story.put("hub", 0)
    await bind(story, MANY, dependents=True)
    await story.put("outside", 0, queue="post", depends=["j1"])
    await crowd(story, MANY, "f:typo", "failed", prefix="f", failure=FAILURE)
    given = {"queue": "mail", "now": 10, "states": ["waiting", "depends", "failed"]}
    canceled = 0
    for state, group in (("depends", None), ("waiting", None), ("failed", "typo")):
        offset: int | None = 0
        while offset is not None:
            reply = await gauge("clear", **given, state=state, group=group, offset=offset)
            assert reply["canceled"] <= 1_250
            canceled, offset = canceled + reply["canceled"], reply["offset"]
    assert canceled == 3 * MANY - 1, (
        "all but j1, on which a job elsewhere depends, and the hub, on which j1 depends"
    )
    assert await story.get("hub") and await story.get("j1")
    assert gauge.most <= 1_250 * 25


async def test_long_chain_of_dependents_has_a_bounded_cost(story: Story, gauge: Gauge) -> None:
    await crowd(story, MANY, "q:mail-depends", "depends", step=1)
    for number in range(
        1, MANY
    ):  # each depends on the one before it, and a job in another queue depends on the last
        await story.change("SADD", f"j:j{number - 1}-dependents", f"j{number}")
        await story.change("SADD", f"j:j{number}-dependencies", f"j{number - 1}")
    await story.put("outside", 0, queue="post", depends=[f"j{MANY - 1}"])
    offset: int | None = 0
    kept: list[str] = []
    while offset is not None:
        reply = await gauge(
            "clear", queue="mail", now=10, state="depends", states=["depends"], offset=offset
        )
        assert reply["canceled"] == 0
        kept, offset = kept + reply["kept"], reply["offset"]
    assert len(kept) == MANY
    assert gauge.most <= 3_000 * 5


FILTERS = {
    "": 0,
    "klass:nosuch": 0,
    "customer:4711": 0.5,
    "queue:nosuch state:complete": 2,
    "run:>1h": 2,
}


@pytest.mark.parametrize(("text", "cost"), FILTERS.items())
async def test_search_of_all_jobs_is_done_in_calls_of_a_bounded_cost(
    story: Story, gauge: Gauge, text: str, cost: int
) -> None:
    await crowd(story, MANY, "completed", "complete", step=1e-6)
    await crowd(story, MANY, "f:typo", "failed", failure=FAILURE, prefix="f")
    await story.change("SADD", "failures", "typo")
    conditions = JobFilter.parse(text).encode(10)
    cursor, searched, calls, total = "0", 0, 0, 0
    while calls == 0 or cursor != "0":
        page = await gauge("find", conditions=conditions, cursor=cursor, count=1000, now=10)
        cursor, searched, calls = page["cursor"], searched + page["searched"], calls + 1
        total = total or page["total"]
    assert searched == total >= MANY
    assert gauge.most <= 1_100
    assert calls <= 2 + searched * (1.1 + cost) / 500
