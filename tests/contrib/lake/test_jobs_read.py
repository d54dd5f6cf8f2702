"""Which jobs there are, and what is read of them, without Spark."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from aioqless import Client, NewJob
from aioqless.contrib.lake.source import job_scan
from aioqless.contrib.lake.source.job_columns import SCHEMA, batch_of, fields_of
from aioqless.contrib.lake.source.job_scan import Finder, Heap, Named, Part, Piece, Span, Wanted
from aioqless.contrib.lake.source.jobs import narrowed


async def found(client: Client, pieces: Sequence[Piece]) -> list[str]:
    """The jids of all pieces, with those that were found twice."""
    finder = Finder(client)
    return sorted(
        [jid.decode() for piece in pieces async for page in finder.jids(piece) for jid in page]
    )


async def put(client: Client, number: int, queue: str = "mail", **options: Any) -> list[str]:
    return await client.queue(queue).put_many(
        [NewJob("greet", {"n": n}, **options) for n in range(number)]
    )


async def test_the_parts_of_the_keyspace_have_every_job_once(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    jids = await put(client, 5_000)
    monkeypatch.setattr(job_scan, "PAGE", 70)  # so that pages end within other parts
    pieces = await Finder(client).pieces(Wanted(), 8)
    assert pieces == [Part(number, 8) for number in range(8)]
    assert await found(client, pieces) == sorted(jids)


async def test_a_job_that_moves_all_the_time_is_found_too(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    jids = await put(client, 3_000)
    monkeypatch.setattr(job_scan, "PAGE", 100)
    moving = True

    async def move() -> None:
        while moving:
            for job in await client.queue("mail").pop(50):
                await job.complete()

    mover = asyncio.create_task(move())
    pieces = await Finder(client).pieces(Wanted(), 4)
    assert await found(client, pieces) == sorted(jids)
    moving = False
    await mover


async def test_jobs_of_other_namespaces_and_what_belongs_to_jobs_are_no_jobs(
    client: Client, redis_url: str
) -> None:
    jid = (await put(client, 1, depends=["none"]))[0]
    async with Client(redis_url, namespace=f"{client.namespace}[x]*") as other:
        mine = await put(other, 2)
        assert await found(client, [Part()]) == [jid]
        assert await found(other, [Part()]) == sorted(mine)


async def test_an_index_is_read_by_score_so_that_what_is_put_meanwhile_hides_nothing(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_scan, "PAGE", 10)
    monkeypatch.setattr(job_scan, "KEYS_PER_PART", 40)
    jids = await put(client, 100)
    finder = Finder(client)
    spans = await finder.pieces(Wanted(queues=frozenset({"mail"}), states=frozenset({"waiting"})))
    assert len(spans) == 3 and all(isinstance(span, Span) for span in spans)
    seen = []
    for span in spans:
        async for page in finder.jids(span):
            seen += [jid.decode() for jid in page]
            await put(client, 3, priority=5)
            for job in await client.queue("mail").pop(2):
                jids = [jid for jid in jids if jid != job.jid]
    assert set(jids) <= set(seen) and len(seen) == len(set(seen))


async def test_of_many_with_the_same_score_none_is_missed(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_scan, "PAGE", 4)
    key = Finder(client).keys("completed")
    await client.redis.zadd(key, {f"a{n}": 1 for n in range(11)} | {f"b{n}": 2 for n in range(11)})
    assert len(await found(client, [Span(key)])) == 22
    assert await found(client, [Span(key, b"2")]) == sorted(f"b{n}" for n in range(11))


async def test_failed_jobs_are_found_whatever_comes_and_goes_in_their_group(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_scan, "PAGE", 10)
    finder = Finder(client)
    key = finder.keys("group", "g")
    await client.redis.rpush(key, *[f"j{n}" for n in range(60)])
    seen: list[str] = []
    async for page in finder.jids(Heap(key)):
        seen += [jid.decode() for jid in page]
        await client.redis.lrem(key, 1, seen[0])
        await client.redis.lrem(key, 1, seen[1])
        await client.redis.lpush(key, f"new{len(seen)}")
    assert {f"j{n}" for n in range(60)} <= set(seen) and len(seen) == len(set(seen))


async def test_filters_choose_the_narrowest_index_there_is(client: Client) -> None:
    await put(client, 3, tags=["a"])
    (job,) = await client.queue("mail").pop(1)
    await job.fail("broken", "no")
    (job,) = await client.queue("mail").pop(1)
    await job.complete()
    finder = Finder(client)
    keys = finder.keys
    cases = {
        Wanted(jids=frozenset({"x"}), queues=frozenset({"mail"})): [Named((b"x",))],
        Wanted(tag="a"): [Span(keys("tag", "a"))],
        Wanted(states=frozenset({"failed"})): [Heap(keys("group", "broken"))],
        Wanted(states=frozenset({"complete"})): [Span(keys("completed"))],
        Wanted(states=frozenset({"complete"}), since=12.5): [Span(keys("completed"), b"12.5")],
        Wanted(queues=frozenset({"mail"}), states=frozenset({"waiting"})): [
            Span(keys("waiting", "mail"))
        ],
        Wanted(queues=frozenset({"mail"})): [
            Span(keys("waiting", "mail")),
            Heap(keys("group", "broken")),
        ],
        Wanted(states=frozenset({"waiting"})): [Part()],
        Wanted(since=1.0): [Part()],
    }
    for wanted, pieces in cases.items():
        assert await finder.pieces(wanted) == pieces, wanted


async def test_a_job_is_read_as_callers_see_it(client: Client) -> None:
    queue = client.queue("mail")
    await queue.put(
        "greet", {"n": 1}, jid="a", priority=-5, tags=["x", "y"], retries=3, depends=["nobody"]
    )
    await queue.put("greet", [], jid="b", delay=60)
    (job,) = await queue.pop(1)
    await job.fail("broken", "it was \u00fc")
    stored = [
        await client.store.connection.execute(
            "HMGET", f"{client.namespace}:j:{jid}", *fields_of(SCHEMA)
        )
        for jid in "abz"
    ]
    failed, scheduled = batch_of(stored, SCHEMA).to_pylist()
    assert [failed[name] for name in ("jid", "klass", "queue", "state", "priority", "tags", "data", "worker", "retries", "expires")] == [
        "a", "greet", "mail", "failed", -5.0, ["x", "y"], '{"n":1}', None, 3, None,
    ]  # fmt: skip
    assert (
        failed["failure"]["group"] == "broken"
        and failed["failure"]["message"] == "it was \u00fc"
        and failed["depends"] == ["nobody"]
    )
    assert abs(failed["time"].timestamp() - await client.store.now()) < 60 and failed["fence"] == 1
    assert (
        scheduled["state"] == "scheduled"
        and scheduled["failure"] is None
        and scheduled["fence"] is None
        and scheduled["priority"] == 0
    )


def test_what_careless_clients_left_is_read_as_far_as_it_goes() -> None:
    stored = [[b"j", b"\xff", None, b"", b"0x", b"{", b'{"type":"old"}', b"", b"zz"]]
    names = ["klass", "queue", "worker", "priority", "tags", "failure", "expires", "fence"]
    (row,) = batch_of(stored, pa.schema([SCHEMA.field(name) for name in names])).to_pylist()
    assert (
        row["klass"] == "\ufffd"
        and row["queue"] is None
        and row["tags"] == []
        and row["failure"]["group"] == "old"
    )
    assert row["priority"] == 0 and row["expires"] is None and row["fence"] is None


def test_filters_that_say_nothing_of_an_index_are_left_to_spark() -> None:
    from pyspark.sql.datasource import EqualTo, GreaterThan, In, StringStartsWith

    wanted = Wanted()
    for each in (
        In(("queue",), ("a", "b")),
        EqualTo(("queue",), "b"),
        EqualTo(("klass",), "k"),
        StringStartsWith(("jid",), "x"),
    ):
        wanted = narrowed(wanted, each)
    assert wanted == Wanted(queues=frozenset({"b"}))
    assert narrowed(wanted, GreaterThan(("retries",), 3)) == wanted
