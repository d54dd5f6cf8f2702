"""Bulks: jobs that gather are popped together."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aioqless.errors import InvalidArgument
from aioqless.store import PutManyRow
from tests.lua.job_rows import row_fields
from tests.lua.story import Story
from tests.lua.test_turns import findings


def of(bulk: str = "embed", size: int = 3, within: float = 5, **more: Any) -> dict[str, Any]:
    """Return the constraints of a job that gathers, perhaps with a limit of a key."""
    own = {"bulk": bulk, "size": size, "within": within, **more}
    if "key" in own:
        own["limits"] = [{"key": own.pop("key"), "limit": own.pop("limit")}]
    return {"constraints": json.dumps(own, separators=(",", ":"))}


async def pop_rows(
    story: Story,
    at: float,
    *,
    count: int = 10,
    worker: str = "ann",
    together: str | None = "1",
    request: str | None = None,
    queues: tuple[str, ...] = ("mail",),
    order: str = "ordered",
) -> list[dict[str, str | None]]:
    """Pop as a worker does; return the fields of each job."""
    rows, *_ = await story.store.pop_many(
        worker=worker,
        count=count,
        now=at,
        order=order,
        together=together,
        request=request,
        batch=[{"queue": queue} for queue in queues],
    )
    fields = row_fields()
    return [
        {
            name: None if value is None else value.decode()
            for name, value in zip(fields, [*row[:-1], *[None] * 20], strict=False)
        }
        for row in rows
    ]


async def pop(story: Story, at: float, **more: Any) -> list[list[str]]:
    """Pop as a worker does; return the jids of each bulk, in their order."""
    bulks: dict[str, list[str]] = {}
    for row in await pop_rows(story, at, **more):
        bulks.setdefault(row["x-bulk"] or f"alone {row['jid']}", []).append(str(row["jid"]))
    return list(bulks.values())


async def index(story: Story, key: str = "embed", queue: str = "mail") -> list[str]:
    return [
        jid.decode()
        for jid in await story.redis.zrevrange(
            f"{story.namespace}:x:bulk:{len(queue)}:{queue}:{key}", 0, -1
        )
    ]


# Gathering


async def test_keys_and_queues_gather_apart(story: Story) -> None:
    await story.put("a", 0, **of("x"))
    await story.put("b", 0, **of("y"))
    await story.put("c", 1, **of("x"))
    await story.put("d", 0, queue="other", **of("x"))
    assert sorted(await pop(story, 5, queues=("mail", "other"))) == [["a", "c"], ["b"], ["d"]]


async def test_gathering_jobs_do_not_stand_in_the_way(story: Story) -> None:
    for n in range(5):
        await story.put(f"g{n}", 0, priority=-10, **of(size=100))
    await story.put("other", 1)
    assert await pop(story, 1, count=1) == [["other"]]


async def test_within_zero_takes_what_waits(story: Story) -> None:
    for n in range(4):
        await story.put(f"j{n}", n, **of(within=0))
    assert await pop(story, 4, count=1) == [["j0", "j1", "j2"]]
    assert await pop(story, 4, count=1) == [["j3"]]


async def test_dependents_gather_when_they_are_released(story: Story) -> None:
    await story.put("first", 0)
    await story.put("a", 0, depends=["first"], **of())
    assert await pop(story, 1) == [["first"]]
    await story.complete("first", 2)
    assert await index(story) == ["a"]
    assert await pop(story, 7) == [["a"]]


async def test_wake_up_is_told_when_the_first_gathers(story: Story) -> None:
    await story.put("a", 0, **of())
    _, due, _ = await story.store.pop_many(
        worker="ann", count=10, now=1, order="ordered", batch=[{"queue": "mail"}], together="1"
    )
    assert float(due) == 4


# Leaving


async def test_moved_job_gathers_in_its_new_queue(story: Story) -> None:
    await story.put("a", 0, **of())
    await story.store.move(queue="other", jid="a", now=1)
    assert await index(story) == []
    assert await index(story, queue="other") == ["a"]


# Losses


async def test_lost_jobs_run_alone(story: Story) -> None:
    for n, jid in enumerate("abc"):
        await story.put(jid, n / 1000, **of())
    assert await pop(story, 1) == [["a", "b", "c"]]
    assert await pop(story, 61, worker="bob") == []  # the grace period
    assert await pop(story, 72, worker="bob") == [["a"], ["b"], ["c"]]
    rows = await pop_rows(story, 300, worker="cy")
    assert rows == []


async def test_job_that_an_operator_timed_out_runs_alone(story: Story) -> None:
    for n, jid in enumerate("abc"):
        await story.put(jid, n / 1000, **of())
    await pop(story, 1)
    await story.store.timeout(jids=["b"], now=2)
    assert await pop(story, 3, worker="bob") == [["b"]]


async def test_jobs_of_a_dead_worker_run_alone(story: Story) -> None:
    for n, jid in enumerate("abc"):
        await story.put(jid, n / 1000, **of(limit=5, key="k"))
    await pop(story, 1)
    await pop(story, 62, worker="bob")
    assert await pop(story, 73, worker="bob") == [["a"], ["b"], ["c"]]
    stored: Any = await story.redis.hget(f"{story.namespace}:j:a", "x-constraints")
    assert json.loads(stored) == {"limits": [{"limit": 5, "key": "k"}]}


async def test_lost_job_that_is_put_again_gathers_again(story: Story) -> None:
    for n, jid in enumerate("abc"):
        await story.put(jid, n / 1000, **of())
    await pop(story, 1)
    await pop(story, 61, worker="bob")
    await pop(story, 72, worker="bob")
    await story.put("a", 80, **of())
    assert await index(story) == ["a"]


async def test_repeated_pop_returns_the_same_bulks(story: Story) -> None:
    for n, jid in enumerate("abc"):
        await story.put(jid, n / 1000, **of())
    await story.put("d", 1)
    first = await pop(story, 1, request="r.0:9")
    assert first == [["a", "b", "c"], ["d"]]
    assert await pop(story, 1, request="r.0:9") == first


# Others


async def test_queue_limit_counts_jobs(story: Story) -> None:
    for n, jid in enumerate("abc"):
        await story.put(jid, n / 1000, **of())
    await story.redis.hset(f"{story.namespace}:config", "mail-max-concurrency", 2)
    assert await pop(story, 1) == [["a", "b"]]
    assert await pop(story, 2) == []
    await story.complete("a", 3)
    assert await pop(story, 6) == [["c"]]


async def test_queue_limit_holds_for_several_bulks(story: Story) -> None:
    await story.redis.hset(f"{story.namespace}:config", "mail-max-concurrency", 4)
    for n in range(6):
        await story.put(f"j{n}", n / 1000, **of(f"k{n % 2}", within=0))
    await story.put("single", 0.5)
    popped = await pop(story, 1)
    assert popped[0] == ["j0", "j2", "j4"] and popped[1:] == [["j1"]]
    assert await pop(story, 2) == []


async def test_pop_brings_a_thousand_jobs_at_most(story: Story) -> None:
    for key in range(4):
        rows: list[PutManyRow] = [
            {"jid": f"{key}-{n:03}", "klass": "Greet", "data": "{}", **of(f"k{key}", size=400)}  # type: ignore[typeddict-item]
            for n in range(400)
        ]
        await story.store.put_many(queue="mail", now=key, batch=rows)
    assert [len(bulk) for bulk in await pop(story, 4)] == [400, 400]
    assert [len(bulk) for bulk in await pop(story, 4)] == [400, 400]


async def test_limit_of_a_key_counts_jobs_and_holds_back_the_others(story: Story) -> None:
    for n, jid in enumerate("abc"):
        await story.put(jid, n / 1000, **of(key="k", limit=2))
    assert await pop(story, 1) == [["a", "b"]]
    assert (await story.store.get(jid="c"))["state"] == "scheduled"
    await story.complete("a", 2)
    assert await pop(story, 2) == [["c"]]


async def test_limits_of_each_job_apply_within_a_bulk(story: Story) -> None:
    for n in range(4):
        await story.put(f"j{n}", n / 1000, **of(size=4, key=f"customer{n % 2}", limit=1))
    assert await pop(story, 1) == [["j0", "j1"]]
    await story.complete("j0", 2)
    await story.complete("j1", 3)
    assert await pop(story, 4) == [["j2", "j3"]]


async def test_jobs_that_a_limit_held_back_are_taken_together(story: Story) -> None:
    for n in range(6):
        await story.put(f"j{n}", n / 1000, **of(size=3, key="k", limit=3))
    assert await pop(story, 1, count=3) == [["j0", "j1", "j2"]]
    batch = [
        {"jid": f"j{n}", "queue": "mail", "fence": await fence_of(story, f"j{n}")} for n in range(3)
    ]
    await story.store.complete_many(worker="ann", now=2, batch=batch)  # type: ignore[arg-type]
    assert await pop(story, 2, count=3) == [["j3", "j4", "j5"]]


async def fence_of(story: Story, jid: str) -> str:
    found: Any = await story.redis.hget(f"{story.namespace}:j:{jid}", "x-fence")
    return str(found.decode())


async def test_tenants_share_the_places_of_a_bulk(story: Story) -> None:
    for n in range(6):
        await story.put(f"a{n}", n / 1000, **of(size=4, fair="a"))
    for n in range(2):
        await story.put(f"b{n}", 0.5 + n / 1000, **of(size=4, fair="b"))
    (bulk,) = await pop(story, 1, count=1)
    assert sorted(bulk) == ["a0", "a1", "b0", "b1"]
    assert await findings(story) == []


async def test_tenants_and_limits_and_bulks_together_leave_nothing(story: Story) -> None:
    for n in range(30):
        own = of(f"k{n % 2}", 4, 1, fair=f"t{n % 3}", key=f"limit{n % 5}", limit=2)
        await story.put(f"j{n}", n / 1000, priority=-(n % 2), **own)
    done, at = set[str](), 1.0
    while len(done) < 30:
        at += 1
        for bulk in await pop(story, at, count=3):
            for jid in bulk:
                await story.complete(jid, at)
                done.add(jid)
        assert at < 60
    assert await findings(story) == []
    assert not await story.redis.keys(f"{story.namespace}:x:bulk:*")
    assert not await story.redis.keys(f"{story.namespace}:x:tenant:*")
    assert not await story.redis.keys(f"{story.namespace}:x:held-back:*")


async def test_clock_that_goes_back_delays_jobs_by_as_much(story: Story) -> None:
    await story.put("a", 100, **of())
    await story.put("b", 50, **of())
    assert await pop(story, 55) == [["b"]]
    assert await pop(story, 104) == []
    assert await pop(story, 110) == [["a"]]


async def test_clock_that_goes_back_does_not_delay_a_full_bulk(story: Story) -> None:
    await story.put("a", 100, **of())
    for n in range(3):
        await story.put(f"b{n}", 99 + n / 1000, **of())
    assert await pop(story, 99.5) == [["b0", "b1", "b2"]]


async def test_another_clients_pop_leaves_an_entry_that_does_no_harm(story: Story) -> None:
    """It pops a job, and returns it with a delay; its entry in the index is stale."""
    for n, jid in enumerate("abc"):
        await story.put(jid, n / 1000, **of())
    name = f"{story.namespace}:q:mail"
    await story.redis.zrem(f"{name}-work", "a")
    await story.redis.zadd(f"{name}-scheduled", {"a": 50})
    await story.redis.hset(f"{story.namespace}:j:a", "state", "scheduled")
    assert await pop(story, 5.5) == [["b", "c"]]
    assert await index(story) == []
    assert await pop(story, 51) == []
    assert await pop(story, 55) == [["a"]]


async def test_check_deletes_stale_entries(story: Story) -> None:
    await story.put("a", 0, **of())
    assert await findings(story, 1) == []
    name = f"{story.namespace}:x:bulk:4:mail:embed"
    await story.redis.zadd(name, {"ghost": 1})
    assert await findings(story, 1) == ["bulk-not-gathering"]
    await findings(story, 1, "resolve")
    assert await findings(story, 1) == [] and await index(story) == ["a"]


async def test_lost_index_delays_jobs_and_no_more(story: Story) -> None:
    await story.put("a", 0, **of())
    await story.put("b", 1, **of())
    await story.redis.delete(f"{story.namespace}:x:bulk:4:mail:embed")
    assert await pop(story, 6) == []
    assert await pop(story, 10) == [["a", "b"]]


@pytest.mark.parametrize(
    "own",
    [
        {"bulk": "x", "size": 0, "within": 1},
        {"bulk": "x", "size": 1001, "within": 1},
        {"bulk": "x", "size": 1.5, "within": 1},
        {"bulk": "x", "within": 1},
        {"bulk": "x", "size": 5},
        {"bulk": "x", "size": 5, "within": -1},
        {"bulk": "x", "size": 5, "within": 1e6},
        {"bulk": 5, "size": 5, "within": 1},
        {"size": 5},
        {"within": 5},
    ],
)
async def test_invalid_constraints_are_refused(story: Story, own: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument):
        await story.put("a", 0, constraints=json.dumps(own))


async def test_lost_member_of_a_set_stays_one(story: Story) -> None:
    for n, jid in enumerate("abc"):
        own = {"set": 17, "bulk": "embed", "size": 3, "within": 5}
        text = json.dumps(own, separators=(",", ":"))
        await story.put(jid, n / 1000, **of())
        await story.redis.hset(f"{story.namespace}:j:{jid}", "x-constraints", text)
    await pop(story, 1)
    await story.store.timeout(jids=["b"], now=2)
    stored: Any = await story.redis.hget(f"{story.namespace}:j:b", "x-constraints")
    assert stored == b'{"set":17}'
