"""Backlogs are processed in bounded batches, and none of them is forgotten."""

import pytest

from aioqless.errors import InvalidArgument
from tests.lua.bounds.many_jobs import (
    A_MOMENT,
    COMPLETED,
    EACH_HAS,
    FAILURE,
    MANY,
    MEMBERS,
    Gauge,
    bind,
    count,
    crowd,
    is_sound,
    new_job,
)
from tests.lua.story import Story


async def test_expired_completed_jobs_are_pruned_a_few_per_call_until_none_is_left(
    story: Story, gauge: Gauge
) -> None:
    await story.configure(jobs_history=604800)  # with any option, each call prunes
    await crowd(story, COMPLETED, "completed", "complete", queue="", step=0.001, tags='["x"]')
    await crowd(story, COMPLETED, "t:x", "complete", queue="", tags='["x"]')
    await story.change("ZADD", "tags", COMPLETED, "x")
    left = COMPLETED
    for number in range(COMPLETED):
        jids = [f"new{number}-{each}" for each in range(20)] if number else ["new"]
        await story.store.put_many(
            queue="mail",
            now=A_MOMENT,
            batch=[{"jid": jid, "klass": "K", "data": "{}"} for jid in jids],
        )
        await story.pop(A_MOMENT, count=20)
        if number:
            await gauge(
                "complete_many",
                worker="ann",
                now=A_MOMENT,
                batch=[{"jid": jid, "queue": "mail"} for jid in jids],
            )
        else:
            await gauge("complete", jid="new", worker="ann", queue="mail", now=A_MOMENT)
        before, left = left, await count(story, "t:x")
        assert 0 < before - left <= 20 + 2 * len(jids)
        if number == 20:
            await story.configure(jobs_history_count=10)  # from here on there are too many, too
        if left == 0:
            break
    assert await story.scores("t:x") == {}
    assert await story.scores("tags") == {}
    assert not [key async for key in story.redis.scan_iter(story.key("j:j*"), 10_000)]
    assert gauge.most <= 60 * 9 + 20 * 15 + 500
    await story.running("last", A_MOMENT, A_MOMENT)
    for _ in range(COMPLETED // 20):
        await story.complete("last", A_MOMENT)
        if await count(story, "completed") == 10:
            break
        await story.running("last", A_MOMENT, A_MOMENT)
    assert await count(story, "completed") == 10
    assert await is_sound(story, A_MOMENT)


async def test_dependents_are_released_in_batches_until_all_are(story: Story, gauge: Gauge) -> None:
    await crowd(story, MANY, "q:mail-depends", "depends")
    await story.running("hub")
    await bind(story, MANY, dependents=True)
    assert await is_sound(story, 2)
    await gauge("complete", jid="hub", worker="ann", queue="mail", now=2)
    released = await count(story, "q:mail-work")
    assert released == 200
    assert await is_sound(story, 3)
    while released < MANY:
        await gauge("pop", queue="elsewhere", worker="ann", count=1, now=3)
        before, released = released, await count(story, "q:mail-work")
        assert 0 < released - before <= 100
    assert gauge.most <= 200 * 12 + 100
    assert await story.noted() == []
    assert await is_sound(story, 4)


async def test_job_put_again_while_its_dependents_are_released_can_have_new_ones(
    story: Story, gauge: Gauge
) -> None:
    size = 1_000
    await crowd(story, size, "q:mail-depends", "depends")
    await story.running("hub")
    await bind(story, size, dependents=True)
    await gauge("complete", jid="hub", worker="ann", queue="mail", now=2)
    await story.put("hub", 3)
    await story.put("new", 3, depends=["hub"])
    await story.put("j7", 3, queue="post", depends=["hub"])
    for _ in range(10):
        await gauge("pop", queue="elsewhere", worker="ann", count=1, now=3)
        assert await is_sound(story, 3)
    assert await story.members("j:hub-dependents") == {"new", "j7"}
    assert await count(story, "q:mail-work") == size
    assert (await story.state("new"), await story.state("j7")) == ("depends", "depends")


async def test_completions_of_one_call_release_a_bounded_number_of_dependents(
    story: Story, gauge: Gauge
) -> None:
    jobs = 100
    for number in range(jobs):
        await crowd(story, 100, "q:mail-depends", "depends", prefix=f"{number}-")
        await story.ask(
            "EVAL", MEMBERS, 1, story.key(f"j:hub{number}-dependents"), 0, 99, f"{number}-"
        )
        await story.ask(
            "EVAL", EACH_HAS, 1, story.key(f"j:{number}-"), 0, 99, "-dependencies", f"hub{number}"
        )
    await crowd(story, jobs, "q:mail-work", "waiting", prefix="hub")
    await story.pop(1, count=jobs)
    batch = [{"jid": f"hub{number}", "queue": "mail"} for number in range(jobs)]
    assert await gauge("complete_many", worker="ann", now=2, batch=batch) == ["complete"] * jobs
    assert await count(story, "q:mail-work") == 1_000 + 100
    assert await is_sound(story, 3)
    for _ in range(8_900 // 100):
        await gauge("peek", queue="elsewhere", count=1, now=3)
    assert await count(story, "q:mail-work") == 100 * jobs
    assert gauge.most <= 1_100 * 12 + jobs * 30
    assert await is_sound(story, 4)


async def test_many_completions_with_one_dependent_each_release_them_all(
    story: Story, gauge: Gauge
) -> None:
    jobs = 500
    await crowd(story, jobs, "q:mail-depends", "depends", prefix="dependent")
    await crowd(story, jobs, "q:mail-work", "waiting", prefix="hub")
    for number in range(jobs):
        await story.change("SADD", f"j:hub{number}-dependents", f"dependent{number}")
        await story.change("SADD", f"j:dependent{number}-dependencies", f"hub{number}")
    await story.pop(1, count=jobs)
    await gauge(
        "complete_many",
        worker="ann",
        now=2,
        batch=[{"jid": f"hub{number}", "queue": "mail"} for number in range(jobs)],
    )
    assert await count(story, "q:mail-work") == jobs
    assert await story.noted() == []


async def test_dependencies_of_a_canceled_job_are_unlinked_in_batches_until_all_are(
    story: Story, gauge: Gauge
) -> None:
    await crowd(story, MANY, "q:mail-work", "waiting")
    await story.put("hub", 0, queue="post", depends=["j0"])
    await bind(story, MANY, dependents=False)
    assert await is_sound(story, 1)
    assert await gauge("cancel", jids=["hub"]) == ["hub"]
    assert await is_sound(story, 1)
    for _ in range(MANY // 100):
        await gauge("pop", queue="elsewhere", worker="ann", count=1, now=3)
    assert await story.noted() == []
    assert not [key async for key in story.redis.scan_iter(story.key("*-dependents"), 10_000)]
    assert gauge.most <= 1_000
    assert await is_sound(story, 4)


async def test_job_with_very_many_dependents_is_not_canceled_before_them(
    story: Story, gauge: Gauge
) -> None:
    await story.put("hub", 0)
    await crowd(story, 20_000, "q:mail-depends", "depends")
    await bind(story, 20_000, dependents=True)
    with pytest.raises(InvalidArgument):
        await gauge("cancel", jids=["hub", *(f"j{number}" for number in range(999))])
    assert gauge.most <= 10
    for first in range(0, 20_000, 1_000):
        assert (
            len(
                await gauge("cancel", jids=[f"j{number}" for number in range(first, first + 1_000)])
            )
            == 1_000
        )
    assert await gauge("cancel", jids=["hub"]) == ["hub"]
    assert not await story.exists("q:mail-depends")
    assert gauge.most <= 1_000 * 20 + 100


async def test_dependencies_are_replaced_only_up_to_a_limit(story: Story, gauge: Gauge) -> None:
    await crowd(story, MANY, "q:mail-work", "waiting")
    await story.put("hub", 0, depends=["j0"])
    await bind(story, MANY, dependents=False)
    with pytest.raises(InvalidArgument):
        await gauge("put", **new_job(depends=["j1"]) | {"jid": "hub"})
    await gauge("put", **new_job() | {"jid": "hub"})
    assert await story.state("hub") == "depends"
    assert gauge.most <= 50
    await gauge("depends", "off", jid="hub", jids=["all"], now=2)
    assert await story.state("hub") == "waiting"


@pytest.mark.parametrize("order", ["oldest first", "newest first"])
async def test_failed_jobs_at_the_ends_of_a_large_group_can_be_canceled(
    story: Story, gauge: Gauge, order: str
) -> None:
    await crowd(story, MANY, "f:typo", "failed", failure=FAILURE)
    await story.change("SADD", "failures", "typo")
    numbers = range(1_000) if order == "oldest first" else range(MANY - 1, MANY - 1_001, -1)
    assert len(await gauge("cancel", jids=[f"j{number}" for number in numbers])) == 1_000
    assert await count(story, "f:typo") == MANY - 1_000
    assert gauge.most <= 1_000 * 18 + 100
    assert await is_sound(story, 1)
