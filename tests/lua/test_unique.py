"""unique: keys held by one job at a time, by its state or for a period."""

import json
from typing import Any

import pytest

from aioqless.errors import InvalidArgument, JobExists
from tests.lua.story import Story


def terms(**given: Any) -> dict[str, Any]:
    return {"constraints": json.dumps({name.rstrip("_"): value for name, value in given.items()})}


UNIQUE = terms(unique="k", until="done")
UNTIL_STARTED = terms(unique="k", until="started")
FOR_A_MINUTE = terms(unique="k", for_=60)


async def test_put_with_a_key_in_use_puts_nothing_and_returns_its_job(
    story: Story,
) -> None:
    assert await story.put("a", 0, **UNIQUE) == "a"
    async with story.unchanged():
        assert await story.put("b", 1, **UNIQUE) == "a"
    assert await story.put("c", 1, **terms(unique="other", until="done")) == "c"


async def test_key_is_held_while_its_job_waits_is_scheduled_held_running_or_stalled(
    story: Story,
) -> None:
    await story.put("first", 0, queue="post")
    await story.put("a", 0, depends=["first"], delay=5, **UNIQUE)
    assert await story.put("b", 1, **UNIQUE) == "a"
    await story.pop(1, queue="post")
    await story.complete("first", 2, queue="post")
    assert (await story.state("a"), await story.put("b", 2, **UNIQUE)) == ("scheduled", "a")
    assert await story.pop(10) == ["a"]
    assert await story.put("b", 11, **UNIQUE) == "a"
    await story.timeout("a", at=12)
    assert (await story.state("a"), await story.put("b", 12, **UNIQUE)) == ("stalled", "a")


async def test_advanced_job_keeps_its_key(story: Story) -> None:
    await story.running("a", **UNIQUE)
    await story.complete("a", 2, next="post")
    assert await story.put("b", 3, **UNIQUE) == "a"


@pytest.mark.parametrize("end", ["complete", "fail", "cancel"])
async def test_end_of_its_job_frees_a_key(story: Story, end: str) -> None:
    await story.running("a", **UNIQUE)
    match end:
        case "complete":
            await story.complete("a", 2)
        case "fail":
            await story.fail("a", 2)
        case _:
            await story.cancel("a")
    assert await story.put("b", 3, **UNIQUE) == "b"
    assert await story.put("c", 3, **UNIQUE) == "b"


@pytest.mark.parametrize("end", ["complete", "cancel"])
async def test_ended_job_leaves_no_key(story: Story, end: str) -> None:
    await story.running("a", **UNIQUE)
    await (story.complete("a", 2) if end == "complete" else story.cancel("a"))
    assert not await story.exists("x:unique:k")


async def test_job_of_a_dead_worker_keeps_its_key_until_it_ends(
    story: Story,
) -> None:
    await story.running("a", retries=0, **UNIQUE)
    assert await story.put("b", 1000, **UNIQUE) == "a"
    await story.pop(1001, worker="bob")
    assert await story.pop(1012, worker="bob") == []
    assert await story.state("a") == "failed"
    assert await story.put("b", 1013, **UNIQUE) == "b"


@pytest.mark.parametrize(
    "gone", [("DEL", "j:a"), ("HSET", "j:a", "state", "complete"), ("HDEL", "j:a", "x-constraints")]
)
async def test_key_of_a_job_deleted_by_another_client_is_free(
    story: Story, gone: tuple[str, ...]
) -> None:
    await story.put("a", 0, **UNIQUE)
    await story.change(*gone)
    assert await story.exists("x:unique:k")
    assert await story.put("b", 1, **UNIQUE) == "b"


@pytest.mark.parametrize("way", ["requeue", "revive", "unfail"])
async def test_job_that_runs_again_holds_its_free_key_again(story: Story, way: str) -> None:
    if way == "requeue":
        await story.completed("a", 0, 1, 2, **UNIQUE)
        await story.store.requeue(queue="mail", jid="a", klass="Greet", data="{}", now=5)
    else:
        await story.failed("a", 0, 1, 2, **UNIQUE)
        await story.put("other", 3, **UNIQUE)
        await story.cancel("other")
        again = {
            "revive": (("revive", "job"), {"jid": "a"}),
            "unfail": (("unfail",), {"queue": "mail", "group": "typo"}),
        }
        words, given = again[way]
        await story.call(*words, now=5, **given)
    assert await story.put("b", 6, **UNIQUE) == "a"


async def test_job_that_is_put_again_does_not_take_its_key_from_another(story: Story) -> None:
    await story.completed("a", 0, 1, 2, **UNIQUE)
    await story.put("b", 3, **UNIQUE)
    await story.store.requeue(queue="mail", jid="a", klass="Greet", data="{}", now=4)
    assert await story.put("c", 5, **UNIQUE) == "b"


async def test_unique_until_started_frees_the_key_during_a_run_and_not_during_a_retry_delay(
    story: Story,
) -> None:
    await story.put("a", 0, **UNTIL_STARTED)
    assert await story.put("b", 0, **UNTIL_STARTED) == "a"
    await story.pop(1)
    await story.retry("a", 2, delay=5)
    assert await story.put("b", 2, **UNTIL_STARTED) == "a"
    await story.pop(10)
    assert await story.put("b", 11, **UNTIL_STARTED) == "b"
    await story.complete("a", 12)
    assert await story.put("c", 13, **UNTIL_STARTED) == "b"


async def test_key_for_a_period_is_held_whatever_happens_to_the_job(story: Story) -> None:
    await story.configure(jobs_history=0)
    await story.completed("a", **FOR_A_MINUTE)
    assert await story.get("a") is None
    assert await story.put("b", 59.5, **FOR_A_MINUTE) == "a"
    assert await story.put("b", 60, **FOR_A_MINUTE) == "b"
    assert await story.put("c", 119, **FOR_A_MINUTE) == "b"


async def test_jid_with_a_key_for_a_period_is_not_put_again(story: Story) -> None:
    await story.completed("a", **FOR_A_MINUTE)
    async with story.unchanged():
        assert await story.put("a", 30, **FOR_A_MINUTE) == "a"


async def test_key_for_a_period_expires_and_is_freed_by_cancellation(story: Story) -> None:
    await story.put("a", 0, **FOR_A_MINUTE)
    assert 0 < await story.ask("PTTL", story.key("x:unique:k")) <= 60_000
    await story.cancel("a")
    assert await story.put("b", 1, **FOR_A_MINUTE) == "b"


async def test_moved_job_keeps_its_key_and_a_job_put_again_can_change_it(
    story: Story,
) -> None:
    await story.put("a", 0, **UNIQUE)
    await story.store.move(queue="post", jid="a", now=1)
    assert await story.put("b", 2, **UNIQUE) == "a"
    await story.put("a", 3, **terms(unique="other", until="done"))
    assert await story.put("b", 4, **UNIQUE) == "b"


# What exists


async def test_put_with_if_exists_raise_is_refused_with_the_existing_jid(story: Story) -> None:
    await story.put("a", 0, **UNIQUE)
    async with story.refused(JobExists, jid="a"):
        await story.put("b", 1, **terms(unique="k", until="done", if_exists="raise"))
    async with story.refused(JobExists, jid="a"):
        await story.put("a", 1, **terms(if_exists="raise"))


@pytest.mark.parametrize("state", ["running", "complete"])
async def test_existing_jid_can_be_kept_in_any_state(story: Story, state: str) -> None:
    await (story.running("a") if state == "running" else story.completed("a"))
    async with story.unchanged():
        assert await story.put("a", 3, **terms(if_exists="keep")) == "a"
    assert await story.put("b", 3, **terms(if_exists="keep")) == "b"
    assert "x-constraints" not in await story.job("b")


async def test_workflow_with_a_duplicate_is_refused_as_a_whole(story: Story) -> None:
    await story.put("a", 0, **UNIQUE)

    def flow(**second: Any) -> list[Any]:
        return [
            {"queue": "mail", "jid": jid, "klass": "K", "data": "1", **more}
            for jid, more in (("b", {}), ("c", second))
        ]

    refusing = {
        "constraints": json.dumps({**json.loads(UNIQUE["constraints"]), "if_exists": "raise"})
    }
    async with story.refused(JobExists, jid="a"):
        await story.store.put_flow(now=1, batch=flow(**refusing))
    await story.cancel("a")
    async with story.refused(JobExists, jid="b"):
        await story.store.put_flow(now=1, batch=[each | UNIQUE for each in flow()])
    assert await story.store.put_flow(now=1, batch=flow(**UNIQUE)) == ["b", "c"]


# Recurring jobs


async def test_instance_with_a_key_in_use_is_skipped(story: Story) -> None:
    await story.recur("r", 0, interval=60, **UNIQUE)
    assert await story.pop(1) == ["r-1"]
    assert await story.pop(70, worker="bob", queue="mail", count=0) == []
    assert await story.heartbeat("r-1", 59) == 119
    assert await story.pop(70, worker="bob", count=5) == []
    assert await story.scores("q:mail-recur") == {"r": 120}
    await story.complete("r-1", 75)
    assert await story.pop(121, worker="bob") == ["r-2"]


async def test_instance_run_now_returns_the_job_that_holds_the_key(story: Story) -> None:
    await story.recur("r", 0, offset=60, **UNIQUE)
    assert await story.store.recur_run(jid="r", now=1) == "r-1"
    assert await story.store.recur_run(jid="r", now=2) == "r-1"


# Refusals


@pytest.mark.parametrize(
    ("given", "argument"),
    [
        ({"unique": ""}, "unique"),
        ({"unique": 7}, "unique"),
        ({"unique": "k"}, "until"),
        ({"unique": "k", "until": "never"}, "until"),
        ({"unique": "k", "for": 0}, "for"),
        ({"unique": "k", "for": [1]}, "for"),
        ({"if_exists": "move"}, "if_exists"),
    ],
)
async def test_invalid_constraints_are_refused_by_name(
    story: Story, given: dict[str, Any], argument: str
) -> None:
    async with story.refused(InvalidArgument, argument=argument):
        await story.put("a", 0, constraints=json.dumps(given))
