"""Jobs with several limits, costs, pauses, and jobs that were held back for long."""

import json
import time
from typing import Any

import pytest

from aioqless.contrib.dashboard.generated_commands import DashboardCommands
from aioqless.errors import InvalidArgument, LockLost, WrongState
from tests.lua.story import Story

Limits = dict[str, Any]


def limited(*limits: dict[str, Any], **more: Any) -> Limits:
    return {"constraints": json.dumps({"limits": limits, **more})}


def slots(key: str, most: int = 1) -> dict[str, Any]:
    return {"key": key, "limit": most}


def starts(key: str, most: int, seconds: float = 60) -> dict[str, Any]:
    return {"key": key, "rate": [most, seconds]}


def costs(key: str, cost: float, most: int = 100, seconds: float = 60) -> dict[str, Any]:
    return {"key": key, "rate": [most, seconds], "cost": cost}


# All or nothing


async def test_job_that_is_held_back_takes_from_no_limit(story: Story) -> None:
    await story.running("a", **limited(slots("a")))
    await story.put("both", 2, **limited(starts("api", 1), slots("a")))
    await story.put("other", 3, **limited(starts("api", 1)))
    assert await story.pop(4, count=9) == ["other"]
    assert await story.scores("x:limit-running:a") == {"a": 71}


async def test_all_limits_count_a_job_that_starts(story: Story) -> None:
    await story.running("a", **limited(slots("a"), starts("api", 2), costs("tokens", 30)))
    assert await story.scores("x:limit-running:a") == {"a": 71}
    assert await story.scores("x:rate-starts:k:api") == {"a:1.000000": 1}
    assert await story.scores("x:rate-starts:k:tokens") == {"a:1.000000:00000000030.000": 1}


async def test_jobs_of_a_full_key_let_others_of_a_shared_limit_start(story: Story) -> None:
    """However many they are, and in whichever list they are."""
    await story.running("one", **limited(slots("all", 2), slots("c1")))
    await story.put("two", 2, **limited(slots("all", 2), slots("c2")))
    for n in range(20):
        await story.put(f"a{n:02}", n + 3, **limited(slots("all", 2), slots("c1")))
    await story.put("three", 50, **limited(slots("all", 2), slots("c3")))
    assert await story.pop(60, count=9) == ["two"]
    await story.complete("two", 61)
    assert await story.pop(62, count=9) == ["three"]


async def test_end_of_a_run_wakes_jobs_of_each_of_its_keys(story: Story) -> None:
    await story.running("both", **limited(slots("a"), slots("b")))
    await story.put("a", 2, **limited(slots("a")))
    await story.put("b", 3, **limited(slots("b")))
    assert await story.pop(4, count=9) == []
    await story.complete("both", 5)
    assert await story.pop(6, count=9) == ["a", "b"]


# Costs


async def test_starts_take_what_they_cost(story: Story) -> None:
    for n, cost in enumerate((60, 30, 20, 10)):
        await story.put(f"a{n}", n, **limited(costs("tokens", cost)))
    assert await story.pop(10, count=9) == ["a0", "a1", "a3"]
    assert await story.where("a2") == {"scheduled": 70}
    assert await story.pop(70, count=9, worker="bob") == ["a2"]


async def test_charge_replaces_the_cost_of_a_start(story: Story) -> None:
    await story.running("a", **limited(costs("tokens", 60)))
    await story.put("b", 2, **limited(costs("tokens", 50)))
    assert await story.pop(3) == []
    assert await story.store.charge(jid="a", worker="ann", now=4, key="tokens", used=50) == 1
    assert await story.pop(5) == ["b"]
    assert await story.store.charge(jid="b", worker="ann", now=6, key="tokens", used=500) == 1
    await story.put("c", 7, **limited(costs("tokens", 1)))
    assert await story.pop(61, worker="bob") == []
    assert await story.where("c") == {"scheduled": 65}


async def test_charge_after_the_period_changes_nothing(story: Story) -> None:
    await story.running("a", **limited(costs("tokens", 60, seconds=5)))
    await story.running("b", put=9, popped=10, **limited(costs("tokens", 60, seconds=5)))
    assert await story.store.charge(jid="a", worker="ann", now=11, key="tokens", used=50) == 0
    assert await story.scores("x:rate-starts:k:tokens") == {"b:10.000000:00000000060.000": 10}


async def test_charge_is_refused_for_another_run_and_another_limit(story: Story) -> None:
    await story.running("a", **limited(costs("tokens", 60), slots("k")))
    with pytest.raises(LockLost):
        await story.store.charge(jid="a", worker="bob", now=2, key="tokens", used=1)
    for key in ("k", "other"):
        with pytest.raises(WrongState):
            await story.store.charge(jid="a", worker="ann", now=2, key=key, used=1)


# Pauses


async def test_no_job_of_a_paused_key_starts_before_the_end(story: Story) -> None:
    now = time.time()
    api = limited(starts("api", 2))
    await story.running("a", put=now - 1, popped=now, **api)
    await story.put("b", now, **api)
    await story.put("other", now)
    await story.release("a", now, delay=30, paused_key="api")
    assert await story.pop(now + 1, count=9) == ["other"]
    assert await story.where("a") == {"scheduled": pytest.approx(now + 30)}
    held = (await story.get("a"))["held_back"]
    assert held["paused_until"] == pytest.approx(now + 30)
    assert await story.pop(now + 29, count=9) == []
    assert await story.pop(now + 30.1, count=9) == ["a"]
    assert await story.pop(now + 61, count=9) == ["b"]


async def test_paused_run_uses_no_retry(story: Story) -> None:
    await story.running("a", **limited(starts("api", 2)))
    await story.release("a", 2, delay=30, paused_key="api")
    assert (await story.get("a"))["remaining"] == 5


async def test_job_without_the_paused_limit_is_delayed_alone(story: Story) -> None:
    await story.running("a")
    assert await story.release("a", 2, delay=30, paused_key="api") == "scheduled"
    assert await story.where("a") == {"scheduled": 32}
    await story.put("b", 3, **limited(starts("api", 2)))
    assert await story.pop(4) == []


async def test_pause_that_was_stored_by_a_clock_far_ahead_does_not_count(story: Story) -> None:
    await story.running("a", put=99_990, popped=99_991, **limited(starts("api", 2)))
    await story.release("a", 100_000, delay=30, paused_key="api")
    await story.put("b", 10, **limited(starts("api", 2)))
    assert await story.pop(11) == ["b"]


# Jobs that were held back for long


async def test_large_cost_is_not_starved_by_small_ones(story: Story) -> None:
    """Each small one comes when an earlier one no longer counts."""
    began: list[str] = []
    for n in range(60):
        if n == 10:
            await story.put("large", 6 * n - 1, **limited(costs("tokens", 90)))
        await story.put(f"s{n}", 6 * n, **limited(costs("tokens", 10)))
        popped = await story.pop(6 * n + 0.001 * n, count=9)
        began += popped
        for jid in popped:
            await story.complete(jid, 6 * n + 1)
    assert began.index("large") < 30


async def test_job_with_two_full_keys_is_not_starved(story: Story) -> None:
    """Each key is always full when the other one is free."""
    await story.put("a0", 0, **limited(slots("a")))
    await story.put("b0", 0, **limited(slots("b")))
    assert set(await story.pop(1, count=9)) == {"a0", "b0"}
    await story.put("both", 2, **limited(slots("a"), slots("b")))
    for n in range(1, 60):
        at = 2 + 10 * n
        for key in "ab":
            await story.put(f"{key}{n}", at, **limited(slots(key)))
        running = set(await story.scores("q:mail-locks"))
        if "both" in running:
            break
        key = "ab"[n % 2]
        for jid in running:
            await story.heartbeat(jid, at)
            if jid[0] == key:
                await story.complete(jid, at + 1)
        await story.pop(at + 2, count=9)
    assert n < 15


async def test_job_of_a_paused_queue_keeps_no_share(story: Story) -> None:
    await story.running("a", **limited(slots("a")))
    await story.running("b", **limited(slots("b")))
    await story.put("both", 2, queue="post", **limited(slots("a"), slots("b")))
    assert await story.pop(3, queue="post") == []
    for jid in "ab":
        await story.heartbeat(jid, 50)
    assert await story.pop(100, queue="post") == []
    await story.complete("b", 101)
    await story.put("next", 102, **limited(slots("b")))
    assert await story.pop(103) == []  # both is before it
    await story.store.pause(queues=["post"])
    await story.put("another", 105, **limited(slots("b")))
    assert await story.pop(106, count=9) == ["another"]


async def test_held_job_says_which_limit_holds_it_and_how_full_it_is(story: Story) -> None:
    now = time.time()
    await story.running("a", put=now, popped=now, **limited(costs("tokens", 60)))
    await story.put("b", now, **limited(slots("k", 3), costs("tokens", 50)))
    assert await story.pop(now) == []
    held = (await story.get("b"))["held_back"]
    assert held.pop("until") == pytest.approx(now + 60)
    assert held == {"key": "tokens", "rate": [100, 60], "used": 60, "cost": 50}


async def test_usage_of_limits_is_found_by_scheduled_and_running_jobs(story: Story) -> None:
    usage = DashboardCommands(story.store).limit_usage
    assert await usage(queue="mail", now=1) == {"keys": [], "total": 0, "read": 0, "jobs": 0}
    for at, jid in enumerate("abc"):
        await story.put(jid, at, **limited(slots("one"), costs("tokens", 60)))
    await story.put("d", 3, **limited(starts("api", 2)))
    assert sorted(await story.pop(10, count=9)) == ["a", "d"]
    await story.release("d", 11, delay=30, paused_key="api")
    await story.put("e", 12, delay=90)
    found = await usage(queue="mail", now=20)
    assert (found["total"], found["read"], found["jobs"]) == (2, 4, 4)
    one, tokens = sorted(found["keys"], key=lambda each: each["key"])
    assert one.pop("jid") in "abc" and tokens.pop("jid") in "abc"
    assert one == {"key": "one", "held": 2, "running": 1, "limit": 1}
    assert tokens == {
        **{"key": "tokens", "held": 0, "running": 0, "rate": [100, 60], "used": 60, "until": 70},
    }
    assert await story.pop(21) == []  # holds d back until the end of the pause
    (api,) = [each for each in (await usage(queue="mail", now=22))["keys"] if each["key"] == "api"]
    assert (api["held"], api["paused_until"]) == (1, 41)


# Refusals


@pytest.mark.parametrize(
    ("given", "argument"),
    [
        ([], "limits"),
        ([slots(f"k{n}") for n in range(5)], "limits"),
        ([slots("k"), starts("k", 5)], "key"),
        ([{"key": "k", "limit": 1, "cost": 5}], "cost"),
        ([costs("k", 101)], "cost"),
        ([costs("k", -1)], "cost"),
        ([7], "key"),
    ],
)
async def test_invalid_limits_are_refused(story: Story, given: list[Any], argument: str) -> None:
    async with story.refused(InvalidArgument, argument=argument):
        await story.put("a", 0, **limited(*given))


async def test_tenants_take_turns_within_their_limits(story: Story) -> None:
    """A limit of one tenant leaves the others' turns as they are."""

    def of(tenant: str) -> Limits:
        return limited(slots("all", 4), slots(tenant, 1), fair=tenant)

    for n in range(6):
        await story.put(f"a{n}", n, **of("a"))
    for n in range(2):
        await story.put(f"b{n}", 10, **of("b"))
        await story.put(f"c{n}", 10, **of("c"))
    ran: list[str] = []
    for at in range(20, 40):
        popped = await story.pop(at, count=9)
        assert len({jid[0] for jid in popped}) == len(popped)
        ran += popped
        for jid in popped:
            await story.complete(jid, at + 0.5)
    assert [jid for jid in ran if jid[0] == "a"] == [f"a{n}" for n in range(6)]
    assert sorted(ran[:3]) == ["a0", "b0", "c0"]
    assert sorted(ran[3:6]) == ["a1", "b1", "c1"]
