"""Scanning and parsing jobs, without Spark."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from aioqless import Client, NewJob
from aioqless.contrib.lake.source import job_scan
from aioqless.contrib.lake.source.job_columns import SCHEMA, batch_of, fields_of
from aioqless.contrib.lake.source.job_scan import (
    FailureGroup,
    JidList,
    JobFilter,
    JobScanner,
    KeyspacePart,
    Piece,
    ScoreRange,
)
from aioqless.contrib.lake.source.jobs import narrow
from tests.contrib.lake.conftest import needs_spark


async def list_jids(client: Client, pieces: Sequence[Piece]) -> list[str]:
    """Return the jids of all pieces, sorted, with duplicates."""
    scanner = JobScanner(client)
    return sorted(
        [jid.decode() for piece in pieces async for page in scanner.jids(piece) for jid in page]
    )


async def put(client: Client, number: int, queue: str = "mail", **options: Any) -> Sequence[str]:
    return await client.queue(queue).put_many(
        [NewJob("greet", {"n": n}, **options) for n in range(number)]
    )


async def test_parts_of_the_keyspace_have_every_job_once(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    jids = await put(client, 5_000)
    monkeypatch.setattr(job_scan, "PAGE", 70)  # so that pages end within other parts
    pieces = await JobScanner(client).divide(JobFilter(), 8)
    assert pieces == [KeyspacePart(number, 8) for number in range(8)]
    assert await list_jids(client, pieces) == sorted(jids)


async def test_moving_jobs_are_found_in_the_keyspace(
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
    pieces = await JobScanner(client).divide(JobFilter(), 4)
    assert await list_jids(client, pieces) == sorted(jids)
    moving = False
    await mover


async def test_other_namespaces_and_other_keys_of_jobs_are_skipped(
    client: Client, redis_url: str
) -> None:
    jid = (await put(client, 1, depends=["none"], missing="done"))[0]
    async with Client(redis_url, namespace=f"{client.namespace}[x]*") as other:
        mine = await put(other, 2)
        assert await list_jids(client, [KeyspacePart()]) == [jid]
        assert await list_jids(other, [KeyspacePart()]) == sorted(mine)


async def test_an_index_has_every_staying_job_while_others_are_put_and_popped(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_scan, "PAGE", 10)
    monkeypatch.setattr(job_scan, "KEYS_PER_PART", 40)
    jids = await put(client, 100)
    scanner = JobScanner(client)
    ranges = await scanner.divide(
        JobFilter(queues=frozenset({"mail"}), states=frozenset({"waiting"}))
    )
    assert len(ranges) == 3 and all(isinstance(part, ScoreRange) for part in ranges)
    seen = []
    for part in ranges:
        async for page in scanner.jids(part):
            seen += [jid.decode() for jid in page]
            await put(client, 3, priority=5)
            for job in await client.queue("mail").pop(2):
                jids = [jid for jid in jids if jid != job.jid]
    assert set(jids) <= set(seen) and len(seen) == len(set(seen))


async def test_all_members_of_one_score_are_found(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_scan, "PAGE", 4)
    key = JobScanner(client).keys("completed")
    await client.redis.zadd(key, {f"a{n}": 1 for n in range(11)} | {f"b{n}": 2 for n in range(11)})
    assert len(await list_jids(client, [ScoreRange(key)])) == 22
    assert await list_jids(client, [ScoreRange(key, b"2")]) == sorted(f"b{n}" for n in range(11))


async def test_failed_jobs_are_found_while_their_group_changes(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_scan, "PAGE", 10)
    scanner = JobScanner(client)
    key = scanner.keys("group", "g")
    await client.redis.rpush(key, *[f"j{n}" for n in range(60)])
    seen: list[str] = []
    async for page in scanner.jids(FailureGroup(key)):
        seen += [jid.decode() for jid in page]
        await client.redis.lrem(key, 1, seen[0])
        await client.redis.lrem(key, 1, seen[1])
        await client.redis.lpush(key, f"new{len(seen)}")
    assert {f"j{n}" for n in range(60)} <= set(seen) and len(seen) == len(set(seen))


async def test_filters_choose_the_smallest_index(client: Client) -> None:
    await put(client, 3, tags=["a"])
    (job,) = await client.queue("mail").pop(1)
    await job.fail("no", group="broken")
    (job,) = await client.queue("mail").pop(1)
    await job.complete()
    scanner = JobScanner(client)
    keys = scanner.keys
    cases = {
        JobFilter(jids=frozenset({"x"}), queues=frozenset({"mail"})): [JidList((b"x",))],
        JobFilter(tag="a"): [ScoreRange(keys("tag", "a"))],
        JobFilter(states=frozenset({"failed"})): [FailureGroup(keys("group", "broken"))],
        JobFilter(states=frozenset({"complete"})): [ScoreRange(keys("completed"))],
        JobFilter(states=frozenset({"complete"}), since=12.5): [
            ScoreRange(keys("completed"), b"12.5")
        ],
        JobFilter(queues=frozenset({"mail"}), states=frozenset({"waiting"})): [
            ScoreRange(keys("waiting", "mail"))
        ],
        JobFilter(queues=frozenset({"mail"})): [
            ScoreRange(keys("waiting", "mail")),
            FailureGroup(keys("group", "broken")),
        ],
        JobFilter(states=frozenset({"waiting"})): [KeyspacePart()],
        JobFilter(since=1.0): [KeyspacePart()],
    }
    for wanted, pieces in cases.items():
        assert await scanner.divide(wanted) == pieces, wanted


async def test_a_job_is_read_as_the_client_returns_it(client: Client) -> None:
    queue = client.queue("mail")
    await queue.put(
        "greet",
        {"n": 1},
        jid="a",
        priority=-5,
        tags=["x", "y"],
        retries=3,
        depends=["nobody"],
        missing="done",
    )
    await queue.put("greet", [], jid="b", delay=60)
    (job,) = await queue.pop(1)
    await job.fail("it was \u00fc", group="broken")
    stored = [
        await client.internals.store.connection.execute(
            "HMGET", f"{client.namespace}:j:{jid}", *fields_of(SCHEMA)
        )
        for jid in "abz"
    ]
    failed, scheduled = batch_of(stored, SCHEMA).to_pylist()
    expected = {
        "jid": "a",
        "klass": "greet",
        "queue": "mail",
        "state": "failed",
        "priority": -5.0,
        "tags": ["x", "y"],
        "data": '{"n":1}',
        "worker": None,
        "retries": 3,
        "expires": None,
    }
    assert {name: failed[name] for name in expected} == expected
    assert (
        failed["failure"]["group"] == "broken"
        and failed["failure"]["message"] == "it was \u00fc"
        and failed["depends"] == ["nobody"]
    )
    assert (
        abs(failed["time"].timestamp() - await client.internals.store.now()) < 60
        and failed["fence"] == 1
    )
    assert (
        scheduled["state"] == "scheduled"
        and scheduled["failure"] is None
        and scheduled["fence"] is None
        and scheduled["priority"] == 0
    )


def test_invalid_fields_of_a_job_are_null_or_replaced() -> None:
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


@needs_spark(4, 1)
def test_filters_without_an_index_are_left_to_spark() -> None:
    from pyspark.sql.datasource import EqualTo, GreaterThan, In, StringStartsWith

    wanted = JobFilter()
    for each in (
        In(("queue",), ("a", "b")),
        EqualTo(("queue",), "b"),
        EqualTo(("klass",), "k"),
        StringStartsWith(("jid",), "x"),
    ):
        wanted = narrow(wanted, each)
    assert wanted == JobFilter(queues=frozenset({"b"}))
    assert narrow(wanted, GreaterThan(("retries",), 3)) == wanted
