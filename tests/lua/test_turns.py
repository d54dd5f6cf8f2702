"""Fair turns: the tenants of a queue start jobs in turns."""

import json
import random
from collections import Counter, defaultdict
from typing import Any

import pytest

from aioqless.errors import InvalidArgument
from aioqless.store import PutManyRow
from tests.lua.story import Story

STEP = 10  # seconds of pseudo-time from a turn to the next
CHECK_STEPS = 100


def of(tenant: str, weight: float | None = None, **more: Any) -> dict[str, Any]:
    """Return the constraints of a tenant's job."""
    own: dict[str, Any] = {"fair": tenant, **more}
    if weight is not None:
        own["weight"] = weight
    return {"constraints": json.dumps(own)}


async def put_all(story: Story, tenant: str, number: int, now: float = 0, **more: Any) -> None:
    """Put jobs `a0`, `a1`, ... of the tenant `a`."""
    rows: list[PutManyRow] = [
        {"jid": f"{tenant}{n}", "klass": "Greet", "data": "{}", **of(tenant, **more)}  # type: ignore[typeddict-item]
        for n in range(number)
    ]
    for at in range(0, number, 1000):
        await story.store.put_many(queue="mail", now=now, batch=rows[at : at + 1000])


async def pop_all(story: Story, at: float = 100, **more: Any) -> list[str]:
    popped: list[str] = []
    while jids := await story.pop(at, **more):
        popped += jids
    return popped


async def tenants(story: Story, at: float = 100, queue: str = "mail") -> dict[str, Any]:
    found = await story.store.tenants(queue=queue, now=at)
    return {each["key"]: each for each in found}


async def findings(story: Story, at: float = 100, resolve: str | None = None) -> list[str]:
    cursor, found = "0", []
    while True:
        step = await story.store.check(now=at, cursor=cursor, resolve=resolve)
        found += [each["problem"] for each in step["found"]]
        cursor = step["cursor"]
        if cursor == "0":
            return sorted(found)


# Order


async def test_tenants_start_jobs_in_turns(story: Story) -> None:
    await put_all(story, "a", 3)
    await put_all(story, "b", 2, 1)
    await put_all(story, "c", 1, 2)
    popped = await pop_all(story)
    assert popped[0] == "a0"
    assert set(popped[1:3]) == {"b0", "c0"}
    assert set(popped[3:5]) == {"a1", "b1"}
    assert popped[5] == "a2"


@pytest.mark.parametrize("number", [2000, pytest.param(100_000, marks=pytest.mark.long)])
async def test_new_tenant_starts_within_tenants_and_slots(story: Story, number: int) -> None:
    await put_all(story, "a", number)
    assert len(await story.pop(1, count=500)) == 500
    await put_all(story, "b", 1, 2)
    assert "b0" in await story.pop(3, count=2)


async def test_weights_share_starts_within_five_percent(story: Story) -> None:
    await put_all(story, "a", 9000, weight=3)
    await put_all(story, "b", 9000, weight=1)
    counts: Counter[str] = Counter()
    for _ in range(10):
        counts.update(jid[0] for jid in await story.pop(1, count=1000))
    assert counts["a"] / counts["b"] == pytest.approx(3, rel=0.05)


async def test_tenant_that_puts_after_each_run_gets_no_more_than_its_share(story: Story) -> None:
    await put_all(story, "a", 60)
    counts: Counter[str] = Counter()
    for n in range(60):
        await story.put(f"b{n}", 1, **of("b"))
        (jid,) = await story.pop(1)
        counts[jid[0]] += 1
    assert counts["a"] == pytest.approx(30, abs=2)


async def test_many_new_tenants_do_not_starve_one_with_several_jobs(story: Story) -> None:
    await put_all(story, "a", 2)
    assert await story.pop(0) == ["a0"]
    seen = []
    for n in range(1100):
        await story.put(f"n{n}", 1, **of(f"new{n}"))
        await story.put(f"m{n}", 1, **of(f"more{n}"))
        seen += await story.pop(1)
    assert "a1" in seen


async def test_new_tenants_start_in_the_order_in_which_they_came(story: Story) -> None:
    await put_all(story, "a", 5)
    jids = [f"{random.random()}" for _ in range(20)]
    for n, jid in enumerate(jids):
        await story.put(jid, n, **of(f"t{n}"))
    assert [jid for jid in await pop_all(story) if jid in jids] == jids


async def test_priority_comes_first_and_has_turns_of_its_own(story: Story) -> None:
    await story.put("b0", 0, **of("b"))
    await story.put("b1", 0, **of("b"))
    for n in range(50):
        await story.put(f"a{n}", 1, priority=-1, **of("a"))
    await story.put("x", 1, priority=-1, **of("b"))
    first = [jid for _ in range(51) for jid in await story.pop(2)]
    assert first.index("x") == 1
    await story.put("c0", 3, **of("c"))
    assert await pop_all(story) == ["b0", "c0", "b1"]


async def test_fractions_of_priorities_are_ordered_by_time(story: Story) -> None:
    for jid in ("a0", "a1", "b0"):
        await story.put(jid, int(jid[1]) + (jid[0] == "b") * 5, priority=0.5, **of(jid[0]))
    assert await pop_all(story) == ["a0", "a1", "b0"]
    assert not await story.exists("x:turns:mail")


async def test_jobs_without_a_tenant_come_as_of_their_time(story: Story) -> None:
    await put_all(story, "a", 5)
    await story.put("plain", 1)
    assert (await pop_all(story))[:2] == ["a0", "plain"]


async def test_turn_is_taken_when_a_delayed_job_is_ready(story: Story) -> None:
    await story.put("later", 0, delay=50, **of("b"))
    await put_all(story, "a", 3)
    assert not (await tenants(story)).get("b")
    assert await story.pop(10) == ["a0"]
    assert (await pop_all(story, 60))[0] == "later"
    assert "x-turn" in await story.job("later")


async def test_turn_is_taken_when_dependencies_are_done(story: Story) -> None:
    await story.put("first", 0)
    await story.put("b0", 0, depends='["first"]', **of("b"))
    assert await story.pop(1) == ["first"]
    await put_all(story, "a", 3)
    assert await story.pop(1) == ["a0"]
    await story.complete("first", 2)
    assert await story.pop(3) == ["b0"]


async def test_instance_of_a_recurring_job_takes_a_turn(story: Story) -> None:
    await put_all(story, "a", 3)
    await story.recur("r", 0, interval=1000, **of("b"))
    assert await story.pop(1) == ["a0"]
    assert await story.pop(1) == ["r-1"]


async def test_parked_job_takes_a_turn_when_it_is_signaled(story: Story) -> None:
    await story.running("b0", **of("b"))
    await story.call("wait", jid="b0", worker="ann", wait_kind="wait", now=2, name="ok", timeout=90)
    assert await story.release("b0", 3, waiting=["wait:ok"]) == "scheduled"
    await put_all(story, "a", 3, 3)
    await story.call("signal", jid="b0", now=4, name="ok", result="true")
    assert (await tenants(story))["b"]["waiting"] == 1
    assert await findings(story) == []
    assert await story.pop(5, count=2) == ["a0", "b0"]


# Places that are kept, and turns that are given back


async def test_released_job_keeps_its_place(story: Story) -> None:
    await put_all(story, "a", 3)
    await put_all(story, "b", 3)
    assert await story.pop(1) == ["a0"]
    await story.release("a0", 2)
    assert await story.pop(3) == ["a0"]


async def test_retried_job_takes_a_new_turn(story: Story) -> None:
    await put_all(story, "a", 2)
    assert await story.pop(1) == ["a0"]
    await story.retry("a0", 2)
    assert await pop_all(story) == ["a1", "a0"]


async def test_lost_job_is_popped_first(story: Story) -> None:
    await put_all(story, "a", 3)
    assert await story.pop(1) == ["a0"]
    assert await story.pop(100, worker="bob", count=3) == ["a1", "a2"]  # its grace period begins
    assert await story.pop(120, worker="bob") == ["a0"]
    assert await findings(story) == []


async def test_held_job_keeps_its_place(story: Story) -> None:
    for n in range(3):
        await story.put(f"a{n}", 0, **of("a", limits=[{"key": "k", "limit": 1}]))
    await put_all(story, "b", 3)
    assert await story.pop(1, count=3) == ["a0", "b0", "b1"]
    assert (await tenants(story))["a"]["waiting"] == 2
    await story.complete("a0", 2)
    assert await story.pop(3) == ["a1"]
    assert await findings(story) == []


async def test_held_job_is_not_behind_new_ones_after_turns_are_reset(story: Story) -> None:
    for n in range(9):
        await story.put(f"a{n}", 0, **of("a", limits=[{"key": "k", "limit": 1}]))
    assert await story.pop(1, count=9) == ["a0"]
    await story.put("b0", 2, **of("b"))
    await story.put("b1", 2, **of("b"))
    await story.complete("a0", 2)
    assert set(await story.pop(3, count=2)) == {"a1", "b0"}


async def test_canceled_jobs_do_not_delay_the_tenant(story: Story) -> None:
    await put_all(story, "a", 100)
    await put_all(story, "b", 3)
    await story.cancel(*(f"a{n}" for n in range(100)))
    await story.put("again", 1, **of("a"))
    assert (await pop_all(story)).index("again") <= 1


async def test_canceled_latest_jobs_give_their_turns_back(story: Story) -> None:
    await put_all(story, "a", 100)
    await put_all(story, "b", 5)
    await story.cancel(*(f"a{n}" for n in range(1, 100)))
    await story.put("again", 1, **of("a"))
    assert (await pop_all(story)).index("again") <= 3


async def test_cleared_queue_has_no_tenants(story: Story) -> None:
    await put_all(story, "a", 10)
    await story.call("clear", queue="mail", state="waiting", offset=0, now=1, states=["waiting"])
    assert await tenants(story) == {}
    assert not [key for key in await story.all_keys() if key.startswith("x:tenant:")]


async def test_turns_are_reset_when_the_queue_is_empty(story: Story) -> None:
    await put_all(story, "a", 50)
    await pop_all(story)
    assert not [key for key in await story.all_keys() if key.startswith("x:t")]
    await put_all(story, "b", 1, 1000)
    assert await story.scores("x:turns:mail") == {
        "0:b": pytest.approx(-(1000 + STEP) / 1e10, abs=1e-15),
        "0:": pytest.approx(-1000.01 / 1e10, abs=1e-16),
    }


async def test_job_of_a_changed_priority_moves_to_the_turns_of_that(story: Story) -> None:
    await put_all(story, "a", 3)
    await put_all(story, "b", 3)
    await story.store.priority(jid="a2", priority=-1)
    assert (await pop_all(story))[0] == "a2"


async def test_job_that_loses_its_tenant_takes_no_turns(story: Story) -> None:
    await story.put("a0", 0, **of("a"))
    await story.put("a0", 1, constraints="{}")
    assert await tenants(story) == {}
    assert "x-turn" not in await story.job("a0")


# Listing


async def test_tenants_are_listed_with_counts_and_lag(story: Story) -> None:
    await put_all(story, "a", 3)
    await story.pop(5)
    await put_all(story, "b", 1, 20)
    assert await story.store.tenants(queue="mail", now=30) == [
        {"key": "b", "priority": 0, "waiting": 1, "running": 0, "lag": pytest.approx(10)},
        {"key": "a", "priority": 0, "waiting": 2, "running": 1, "lag": pytest.approx(30)},
    ]


async def test_lag_of_a_queue_is_read_from_its_next_job(story: Story) -> None:
    await put_all(story, "a", 300)
    await story.pop(1, count=200)
    assert await story.store.lag(queues=["mail"], now=30) == [pytest.approx(30, abs=0.01)]


async def test_tenants_are_paged(story: Story) -> None:
    for n in range(25):
        await story.put(f"j{n}", n, **of(f"t{n}"))
    seen = []
    for offset in (0, 10, 20):
        page = await story.store.tenants(queue="mail", now=30, offset=offset, count=10)
        seen += [each["key"] for each in page]
    assert sorted(seen) == sorted(f"t{n}" for n in range(25))


async def test_tenants_of_which_jobs_only_run_are_on_the_last_page(story: Story) -> None:
    await put_all(story, "a", 1)
    assert await story.pop(1) == ["a0"]
    for n in range(9):  # with that of new tenants, ten turns
        await story.put(f"j{n}", n, **of(f"t{n}"))
    pages = [
        [each["key"] for each in await story.store.tenants(queue="mail", now=9, offset=n, count=5)]
        for n in (0, 5, 10, 15)
    ]
    assert [len(page) for page in pages] == [4, 5, 1, 0]
    assert pages[2] == ["a"]


@pytest.mark.parametrize("weight", [0, 0.001, 101, -1])
async def test_weight_out_of_range_is_refused(story: Story, weight: float) -> None:
    async with story.refused(InvalidArgument, argument="weight"):
        await story.put("a", 0, **of("a", weight))


async def test_weight_without_tenant_is_refused(story: Story) -> None:
    async with story.refused(InvalidArgument, argument="fair"):
        await story.put("a", 0, constraints='{"weight": 2}')


# Bounds


async def test_tenants_without_jobs_are_forgotten(story: Story) -> None:
    """The queue never gets empty; each tenant puts one job."""
    await put_all(story, "a", 3000)
    for n in range(4000):
        await story.put(f"j{n}", 1, **of(f"t{n}"))
        await story.pop(1)
    assert len(await story.scores("x:turns:mail")) < 1300


@pytest.mark.parametrize("number", [3000, pytest.param(100_000, marks=pytest.mark.long)])
async def test_memory_of_many_waiting_tenants_is_freed_when_their_jobs_have_run(
    story: Story, number: int
) -> None:
    await put_all(story, "a", 2000)
    for at in range(0, number, 1000):
        rows: list[PutManyRow] = [
            {"jid": f"j{n}", "klass": "Greet", "data": "{}", **of(f"t{n}")}  # type: ignore[typeddict-item]
            for n in range(at, at + 1000)
        ]
        await story.store.put_many(queue="mail", now=1, batch=rows)

    async def measure_bytes(key: str) -> int:
        return await story.ask("MEMORY", "USAGE", story.key(key)) or 0

    assert await measure_bytes("x:turns:mail") < 300 * number + 10_000
    assert await measure_bytes("x:tenant:4:mail:0:t7") < 300
    left = {f"j{n}" for n in range(number)}
    pops = 0
    while left:
        left.difference_update(await story.pop(2, count=1000))
        pops += 1
    assert pops <= number // 1000 + 2  # those of `a` take one turn while 1,000 others do
    assert await story.scores("q:mail-work")
    assert len(await story.scores("x:turns:mail")) < 1300
    keys = await story.ask("KEYS", story.key("x:tenant:*"))
    assert keys == [story.key("x:tenant:4:mail:0:a").encode()]


@pytest.mark.parametrize("own", [{}, {"constraints": '{"limits": [{"key": "k", "limit": 9}]}'}])
async def test_jobs_without_a_tenant_read_and_write_no_turns(
    story: Story, own: dict[str, Any]
) -> None:
    async with story.commands_of_scripts() as commands:
        await story.put("a", 0, **own)
        await story.put("b", 0, delay=5, **own)
        assert await story.pop(1) == ["a"]
        await story.release("a", 2)
        assert await story.pop(3) == ["a"]
        await story.retry("a", 4)
        assert await story.pop(6, count=2) == ["a", "b"]
        await story.store.lag(queues=["mail"], now=7)
        await story.complete("a", 7)
        await story.fail("b", 7)
        await story.call("unfail", now=8, queue="mail", group="typo", count=9)
        await story.store.priority(jid="b", priority=2)
        await story.cancel("b")
    assert any("q:mail-work" in command for command in commands)
    assert not [each for each in commands if "x:turns" in each or "x:tenant" in each]
    assert not [each for each in commands if each.startswith("HGET ") and "x-turn" in each]


# Other clients, and damage


async def test_other_clients_pop_in_turns_and_leave_entries_for_check(story: Story) -> None:
    await put_all(story, "a", 3)
    await put_all(story, "b", 1)
    assert (await story.change("ZPOPMAX", "q:mail-work"))[0][0] == b"a0"
    await story.change("HSET", "j:a0", "state", "running", "worker", "bob", "expires", "60")
    await story.change("ZADD", "q:mail-locks", 60, "a0")
    await story.change("ZADD", "w:bob:jobs", 60, "a0")
    assert await findings(story) == ["turn-not-waiting"]
    assert await findings(story, resolve="resolve") == ["turn-not-waiting"]
    assert await findings(story) == []


async def test_lost_bookkeeping_costs_only_the_order(story: Story) -> None:
    await put_all(story, "a", 5)
    await put_all(story, "b", 2)
    for key in await story.all_keys():
        if key.startswith(("x:turns:", "x:tenant:")):
            await story.change("DEL", key)
    assert await findings(story) == ["without-turn"] * 7
    await findings(story, resolve="resolve")
    assert await findings(story) == []
    await put_all(story, "c", 1, 5)
    assert len(await pop_all(story)) == 8


async def test_lost_turns_of_tenants_are_repaired(story: Story) -> None:
    await put_all(story, "a", 5)
    await story.change("DEL", "x:turns:mail")
    assert await findings(story) == ["tenant-without-turn"]
    await findings(story, resolve="resolve")
    assert await findings(story) == []
    assert await pop_all(story) == [f"a{n}" for n in range(5)]


# Any order of steps


@pytest.mark.parametrize("seed", range(12))
async def test_any_interleaving_keeps_the_books_and_leaves_no_slot_idle(
    story: Story, seed: int
) -> None:
    dice = random.Random(seed)
    waiting: dict[str, str] = {}
    running: set[str] = set()
    delayed: dict[str, float] = {}
    names = ["a", "b", "c", ""]
    tenant_of: dict[str, str] = {}
    for step in range(CHECK_STEPS * 3):
        now = step * 0.1
        for jid in [jid for jid, due in delayed.items() if due <= now]:
            waiting[jid] = tenant_of[jid]
            del delayed[jid]
        match dice.choice(["put", "put", "pop", "pop", "complete", "release", "retry", "cancel"]):
            case "put":
                jid, tenant = f"j{step}", dice.choice(names)
                own = of(tenant, dice.choice([None, 0.5, 2])) if tenant else {}
                delay = dice.choice([0, 0, 0, 3])
                priority = dice.choice([0, 0, 0, -1])
                await story.put(jid, now, delay=delay, priority=priority, **own)
                tenant_of[jid] = tenant
                if delay:
                    delayed[jid] = now + delay
                else:
                    waiting[jid] = tenant
            case "pop":
                count = dice.choice([1, 1, 3])
                jids = await story.pop(now, count=count)
                assert len(jids) == min(count, len(waiting))
                assert set(jids) <= waiting.keys()
                for jid in jids:
                    del waiting[jid]
                    running.add(jid)
            case "complete" if running:
                jid = dice.choice(sorted(running))
                await story.complete(jid, now)
                running.discard(jid)
            case "release" if running:
                jid = dice.choice(sorted(running))
                await story.release(jid, now)
                running.discard(jid)
                waiting[jid] = tenant_of[jid]
            case "retry" if running:
                jid = dice.choice(sorted(running))
                if int((await story.job(jid))["remaining"]) > 0:
                    await story.retry(jid, now)
                    running.discard(jid)
                    waiting[jid] = tenant_of[jid]
            case "cancel" if waiting:
                jid = dice.choice(sorted(waiting))
                await story.cancel(jid)
                del waiting[jid]
        if step % CHECK_STEPS == CHECK_STEPS - 1:
            assert await findings(story, now) == []
            counts: dict[str, int] = defaultdict(int)
            for each in await story.store.tenants(queue="mail", now=now):
                counts[each["key"]] += each["waiting"]
            assert {key: n for key, n in counts.items() if n} == Counter(
                waiting[jid] for jid in await story.scores("q:mail-work") if waiting[jid]
            )
    assert len(await pop_all(story, 1000)) >= len(waiting)
