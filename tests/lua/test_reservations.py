"""Reservations of human tasks: with a duration, per session."""

from __future__ import annotations

from typing import Any

from aioqless.contrib.human_tasks.generated_commands import HumanTasksCommands
from tests.lua.story import Story


async def ask(
    story: Story, at: float, who: str = "ada", *, limit: float = 300, **more: Any
) -> dict[str, Any]:
    """Reserve a job; `ada@2` is the second session of ada."""
    given = {"queue": "mail", **more}
    answer: dict[str, Any] = await HumanTasksCommands(story.store).reserve(
        person=who.partition("@")[0], worker=who, limit=limit, now=at, **given
    )
    return answer


async def reserve(story: Story, at: float, who: str = "ada", **more: Any) -> str | None:
    job = (await ask(story, at, who, **more))["job"]
    return job and job["jid"]


async def skip(story: Story, jid: str, at: float, who: str = "ada", **more: Any) -> Any:
    return await HumanTasksCommands(story.store).skip(
        jid=jid, person=who.partition("@")[0], worker=who, now=at, **more
    )


async def is_sound(story: Story, at: float) -> bool:
    return bool((await story.store.check(now=at, budget=10_000))["found"] == [])


# Expired reservations


async def test_expired_reservation_is_given_to_the_next_person_without_using_a_retry(
    story: Story,
) -> None:
    await story.put("a", 0, retries=0)
    for round in range(20):  # more often than a worker may lose it
        at = 10 + 100 * round
        assert await reserve(story, at, f"p{round}", limit=50) == "a"
    job = await story.get("a")
    assert (job["remaining"], job["state"]) == (0, "running")
    assert "x-lost" not in await story.job("a")
    whats = [event["what"] for event in job["history"]]
    assert (whats.count("abandoned"), "timed-out" in whats, "failed" in whats) == (19, False, False)
    assert (await story.day()).get("retries", "0") == "0"
    assert await is_sound(story, at + 10)


async def test_lock_lost_by_another_client_after_a_reservation_uses_a_retry(
    story: Story,
) -> None:
    """qless pops without incrementing the fence."""
    await story.configure(grace_period=0)
    await story.put("a", 0)
    await reserve(story, 1, limit=10)
    await story.change("HSET", "j:a", "worker", "ruby", "expires", 100)
    await story.change("ZADD", "q:mail-locks", 100, "a")
    assert await story.pop(200) == ["a"]
    assert (await story.get("a"))["remaining"] == 4


# Skipping


async def test_latest_200_skips_are_remembered_for_a_week(story: Story) -> None:
    for n in range(205):
        await story.put(f"j{n:03}", n)
    for n in range(205):
        jid = await reserve(story, 1000 + n)
        assert jid == f"j{n:03}"
        await skip(story, jid, 1000 + n)
    assert len(await story.scores("x:skipped:ada")) == 200
    assert 604_000 < await story.ask("TTL", story.key("x:skipped:ada")) <= 604_800
    assert await reserve(story, 2000) == "j000"


async def test_skipped_job_frees_its_concurrency_limit(story: Story) -> None:
    terms = '{"limits":[{"key":"k","limit":1}]}'
    for n, jid in enumerate("ab"):
        await story.put(jid, n, constraints=terms)
    assert await reserve(story, 2) == "a"
    assert await reserve(story, 2, "bob") is None
    await skip(story, "a", 3)
    assert await reserve(story, 4, "bob") == "b"
    assert await is_sound(story, 5)
