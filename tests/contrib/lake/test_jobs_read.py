"""Scanning and parsing jobs, without Spark."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from aioqless import Client, NewJob
from aioqless.contrib.lake.source import jobs as source_jobs
from aioqless.contrib.lake.source.job_columns import SCHEMA, batch_of, fields_of


async def listed(client: Client) -> list[str]:
    return sorted(jid.decode() for jid in await source_jobs.list_jids(client))


async def put(client: Client, number: int, queue: str = "mail", **options: Any) -> Sequence[str]:
    return await client.queue(queue).put_many(
        [NewJob("greet", {"n": n}, **options) for n in range(number)]
    )


async def test_moving_jobs_are_found_in_the_keyspace(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    jids = await put(client, 3_000)
    monkeypatch.setattr(source_jobs, "PAGE", 100)
    moving = True

    async def move() -> None:
        while moving:
            for job in await client.queue("mail").pop(50):
                await job.complete()

    mover = asyncio.create_task(move())
    assert await listed(client) == sorted(jids)
    moving = False
    await mover


async def test_other_namespaces_and_other_keys_of_jobs_are_skipped(
    client: Client, redis_url: str
) -> None:
    jid = (await put(client, 1, depends=["none"], missing="done"))[0]
    async with Client(redis_url, namespace=f"{client.namespace}[x]*") as other:
        mine = await put(other, 2)
        assert await listed(client) == [jid]
        assert await listed(other) == sorted(mine)


async def test_a_job_is_read_as_the_client_returns_it(client: Client) -> None:
    queue = client.queue("mail")
    options: dict[str, Any] = {
        "priority": -5,
        "tags": ["x", "y"],
        "retries": 3,
        "depends": ["nobody"],
    }
    await queue.put("greet", {"n": 1}, jid="a", missing="done", **options)
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
    names = ("jid", "klass", "queue", "state", "priority", "tags", "data", "worker", "fence")
    expected = ["a", "greet", "mail", "failed", -5.0, ["x", "y"], '{"n":1}', None, 1]
    assert [failed[name] for name in names] == expected
    assert (failed["retries"], failed["expires"], failed["depends"]) == (3, None, ["nobody"])
    assert (failed["failure"]["group"], failed["failure"]["message"]) == ("broken", "it was \u00fc")
    assert abs(failed["time"].timestamp() - await client.internals.store.now()) < 60
    of_scheduled = ("state", "failure", "fence", "priority")
    assert [scheduled[name] for name in of_scheduled] == ["scheduled", None, None, 0]


def test_invalid_fields_of_a_job_are_null_or_replaced() -> None:
    stored = [[b"j", b"\xff", None, b"", b"0x", b"{", b'{"type":"old"}', b"", b"zz"]]
    names = ["klass", "queue", "worker", "priority", "tags", "failure", "expires", "fence"]
    (row,) = batch_of(stored, pa.schema([SCHEMA.field(name) for name in names])).to_pylist()
    assert (row["klass"], row["queue"], row["tags"]) == ("\ufffd", None, [])
    assert (row["failure"]["group"], row["priority"]) == ("old", 0)
    assert row["expires"] is None and row["fence"] is None
