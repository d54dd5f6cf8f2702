"""complete: ends a run; the job is complete or advances to another queue."""

from aioqless.errors import WrongState
from aioqless.store import PutManyRow
from tests.lua.story import Story, score

A_MOMENT = 1353000060.123456


# Completing


async def test_job_put_at_0_popped_at_1_completed_at_2_is_complete(story: Story) -> None:
    await story.put("a", 0)
    assert await story.pop(1) == ["a"]
    assert await story.complete("a", 2) == "complete"
    job = await story.get("a")
    assert (job["state"], job["queue"], job["worker"], job["expires"], job["failure"]) == (
        "complete",
        "",
        "",
        0,
        {},
    )
    assert await story.event_times("a") == [(0, "put"), (1, "popped"), (2, "done")]


async def test_completed_job_is_stored_like_by_other_qless_clients(story: Story) -> None:
    await story.put("a", 0, retries=3)
    await story.pop(A_MOMENT - 1)
    await story.complete("a", A_MOMENT)
    stored = {
        name: value for name, value in (await story.job("a")).items() if not name.startswith("x-")
    }
    assert stored == {
        "jid": "a", "klass": "Greet", "data": "{}", "priority": "0", "tags": "[]",
        "state": "complete", "worker": "", "expires": "0",
        "queue": "", "retries": "3", "remaining": "3", "time": "1353000060.123456",
        "failure": "{}", "history": "[]",
    }  # fmt: skip
    assert await story.scores("completed") == {"a": A_MOMENT}
    assert (await story.items("j:a-history"))[2:] == ['[1353000060,"done",{},0.123456]']


async def test_completion_replaces_the_data_if_given(story: Story) -> None:
    await story.running("a", data='{ "n": [] }')
    await story.complete("a", 2, next="mail")
    assert (await story.job("a"))["data"] == '{ "n": [] }'
    await story.pop(3)
    await story.complete("a", 4, data="[12345678901234567, {} ,1.0,[]]")
    assert (await story.job("a"))["data"] == "[12345678901234567, {} ,1.0,[]]"


# Refusals


async def test_holder_must_name_the_queue_of_the_job(story: Story) -> None:
    await story.running("a")
    async with story.refused(WrongState, jid="a", queue="mail"):
        await story.complete("a", 2, queue="post")


# Advancing


async def test_job_advances_to_another_queue(story: Story) -> None:
    await story.running("a", priority=-2, retries=3)
    assert await story.complete("a", 2, next="post", data="[2]") == "waiting"
    job = await story.get("a")
    assert (job["state"], job["queue"], job["worker"], job["expires"], job["data"]) == (
        "waiting",
        "post",
        "",
        0,
        "[2]",
    )
    assert (await story.where("a"), await story.where("a", "post")) == ({}, {"work": score(2, 2)})
    assert (await story.items("j:a-history"))[2:] == ['[2,"done"]', '[2,"put",{"q":"post"}]']
    assert (await story.scores("completed"), await story.scores("w:ann:jobs")) == ({}, {})
    assert await story.scores("queues") == {"mail": 0, "post": 2}


async def test_advanced_job_can_have_dependencies(story: Story) -> None:
    await story.put("b", 0, queue="other")
    await story.running("a")
    assert await story.complete("a", 2, next="post", depends=["b"]) == "depends"
    assert (await story.where("a", "post"), await story.state("a")) == ({"depends": 2}, "depends")
    assert (await story.members("j:a-dependencies"), await story.members("j:b-dependents")) == (
        {"b"},
        {"a"},
    )


async def test_advanced_job_can_have_dependencies_and_a_delay(story: Story) -> None:
    await story.put("b", 0, queue="other")
    await story.running("a")
    assert await story.complete("a", 2, next="post", delay=100, depends=["b"]) == "depends"
    assert (await story.job("a"))["scheduled"] == "102"
    await story.pop(3, queue="other")
    await story.complete("b", 4, queue="other")
    assert (await story.where("a", "post"), await story.state("a")) == (
        {"scheduled": 102},
        "scheduled",
    )
    assert "scheduled" not in await story.job("a")


async def test_advancing_does_not_release_dependents(story: Story) -> None:
    await story.running("a")
    await story.put("b", 2, depends=["a"])
    await story.complete("a", 3, next="post")
    assert await story.state("b") == "depends"
    assert await story.members("j:a-dependents") == {"b"}


# Dependents


async def test_completion_releases_jobs_without_other_dependencies(story: Story) -> None:
    await story.running("a")
    await story.put("b", 2, queue="post", depends=["a"], priority=-1)
    await story.complete("a", 3)
    assert (await story.where("b", "post"), await story.state("b")) == (
        {"work": score(1, 3)},
        "waiting",
    )
    assert not await story.exists("j:a-dependents")
    assert not await story.exists("j:b-dependencies")


async def test_job_with_two_dependencies_waits_for_both(story: Story) -> None:
    await story.put("a", 0)
    await story.put("b", 1)
    await story.put("c", 2, depends=["a", "b"])
    assert await story.pop(3, count=3) == ["a", "b"]
    await story.complete("b", 4)
    assert (await story.state("c"), await story.members("j:c-dependencies")) == ("depends", {"a"})
    await story.complete("a", 5)
    assert await story.where("c") == {"work": score(0, 5)}


async def test_released_dependent_with_a_delay_is_scheduled(story: Story) -> None:
    await story.running("a")
    await story.put("b", 2, depends=["a"], delay=100)
    await story.complete("a", 3)
    assert (await story.where("b"), await story.state("b")) == ({"scheduled": 102}, "scheduled")


async def test_released_dependent_with_a_past_delay_waits_to_run(story: Story) -> None:
    await story.running("a")
    await story.put("b", 2, depends=["a"], delay=10)
    await story.complete("a", 50)
    assert await story.pop(50) == ["b"]
    assert "scheduled" not in await story.job("b")


async def test_chain_runs_step_by_step(story: Story) -> None:
    await story.put("a", 0)
    await story.put("b", 0, depends=["a"])
    await story.put("c", 0, depends=["b"])
    for at, jid in enumerate("abc", 1):
        assert await story.pop(at, count=3) == [jid]
        await story.complete(jid, at)


async def test_very_many_dependents_are_released_over_several_calls(
    story: Story,
) -> None:
    await story.running("a")
    waiting = [f"w{n:03}" for n in range(350)]
    await story.store.put_many(
        queue="post",
        now=2,
        batch=[{"jid": w, "klass": "K", "data": "1", "depends": ["a"]} for w in waiting],
    )
    await story.complete("a", 3)
    assert await story.counts(3, "post") == {"waiting": 200, "depends": 150}
    await story.pop(4, queue="other")
    assert await story.counts(4, "post") == {"waiting": 300, "depends": 50}
    await story.peek(5, queue="other")
    assert await story.counts(5, "post") == {"waiting": 350}
    assert await story.noted() == []
    left = {key for key in await story.all_keys() if key.startswith("x:")}
    assert left == {"x:fence", "x:agenda", "x:old-statistics"}, "nothing to do is left behind"


async def test_job_put_again_separates_new_dependents_from_former_ones(
    story: Story,
) -> None:
    await story.running("a")
    early: list[PutManyRow] = [
        {"jid": f"w{n:03}", "klass": "K", "data": "1", "depends": ["a"]} for n in range(300)
    ]
    await story.store.put_many(queue="post", now=2, batch=early)
    await story.complete("a", 3)
    await story.put("a", 4)
    await story.put("late", 5, queue="post", depends=["a"])
    await story.pop(6, queue="other")
    assert await story.counts(6, "post") == {"waiting": 300, "depends": 1}
    assert await story.pop(7) == ["a"]
    await story.complete("a", 8)
    assert await story.state("late") == "waiting"
