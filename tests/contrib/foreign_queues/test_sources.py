"""Sources of imported jobs, and messages for the operator."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from redis.asyncio import Redis

from aioqless import Client
from aioqless.contrib.foreign_queues import ForeignQueues, ImportLoop
from aioqless.worker.context import Outage
from tests.conftest import Until, existing_job
from tests.server import OwnServer
from tests.worker.conftest import Lines

# As exq 0.19 writes it.
EXQ = (
    '{"queue":"default","retry":true,"class":"MyApp.Worker","args":["arg1",1.0,{"a":[]}],'
    '"jid":"f1a3ab9e-8aeb-4ec2-a6bb-a7b7d2a4b4d5","enqueued_at":1700000000.5}'
)
RESQUE = '{"class":"Archive","args":[35,"compressed"]}'


def _import_loop(client: Client, poll: float = 1.0, **source: Any) -> ImportLoop:
    return ImportLoop(client, ForeignQueues(**source), Outage(), poll)


async def test_jobs_of_exq_are_found_under_its_prefix(here: Client) -> None:
    await here.redis.sadd("exq:queues", "default")
    await here.redis.lpush("exq:queue:default", EXQ)
    await here.redis.zadd("exq:schedule", {EXQ.replace("f1a3", "aaaa"): 4e9})
    await here.redis.zadd(
        "exq:retry",
        {
            EXQ.replace("f1a3", "bbbb").replace(
                '"retry"', '"retry_count":0,"error_message":"no","retry"'
            ): 4e9
        },
    )
    assert await _import_loop(here, format="exq", into="elixir-").run_once() == 3
    job = await existing_job(here, "f1a3ab9e-8aeb-4ec2-a6bb-a7b7d2a4b4d5")
    assert (job.klass, job.queue, job.retries, job.raw_data) == (
        "MyApp.Worker",
        "elixir-default",
        25,
        '["arg1",1.0,{"a":[]}]',
    )
    counts = await here.queue("elixir-default").counts()
    assert (counts.waiting, counts.scheduled) == (1, 2)


async def test_used_retries_and_failures_of_exq_are_kept(here: Client) -> None:
    failed = EXQ.replace(
        '"retry":true',
        '"retry":5,"retry_count":1,"error_message":"no route","failed_at":1700000001.5',
    )
    await here.redis.zadd("exq:retry", {failed: 4e9})
    assert await _import_loop(here, format="exq").run_once() == 1
    job = await existing_job(here, "f1a3ab9e-8aeb-4ec2-a6bb-a7b7d2a4b4d5")
    assert (job.retries, job.remaining) == (5, 4)
    assert job.failure and (job.failure.group, job.failure.message) == ("default-Error", "no route")


async def test_running_jobs_of_dead_exq_nodes_are_imported(here: Client) -> None:
    await here.redis.sadd("exq:queues", "default")
    now = await here.internals.store.now()
    await here.redis.zadd("exq:heartbeats", {"dead": 1.7e9, "alive": now})
    jids = [f"{number:08}-8aeb-4ec2-a6bb-a7b7d2a4b4d5" for number in range(250)]
    for jid in jids:
        await here.redis.lpush(
            "exq:queue:backup::dead::default",
            EXQ.replace("f1a3ab9e-8aeb-4ec2-a6bb-a7b7d2a4b4d5", jid),
        )
    await here.redis.lpush("exq:queue:backup::alive::default", EXQ)
    assert await _import_loop(here, format="exq").run_once() == 250
    assert await here.queue("default").jids("waiting", count=300) == jids
    assert await here.redis.llen("exq:queue:backup::alive::default") == 1


async def test_jobs_of_resque_keep_their_order(here: Client) -> None:
    await here.redis.sadd("resque:queues", "low")
    await here.redis.rpush("resque:queue:low", RESQUE, RESQUE.replace("35", "36"), RESQUE)
    assert await _import_loop(here, format="resque").run_once() == 3
    jobs = await here.queue("low").peek(count=9)
    assert [(job.klass, job.data, job.retries) for job in jobs] == [
        ("Archive", [n, "compressed"], 5) for n in (35, 36, 35)
    ]


async def test_prefix_may_end_with_a_colon(here: Client) -> None:
    for prefix, jid in (("app", "a"), ("app:", "b")):
        await here.redis.sadd("app:queues", "mail")
        await here.redis.lpush("app:queue:mail", json.dumps({"class": "K", "args": [], "jid": jid}))
        assert await _import_loop(here, format="sidekiq", prefix=prefix).run_once() == 1


async def test_only_named_queues_are_imported(here: Client) -> None:
    for queue in ("mail", "post"):
        entry = json.dumps({"class": "K", "args": [], "queue": queue})
        await here.redis.sadd("queues", queue)
        await here.redis.lpush(f"queue:{queue}", entry)
        await here.redis.zadd("schedule", {entry: 4e9})
    assert await _import_loop(here, format="sidekiq", queues=("post",)).run_once() == 2
    assert [await here.redis.llen(f"queue:{queue}") for queue in ("mail", "post")] == [1, 0]
    assert b'"mail"' in (await here.redis.zrange("schedule", 0, -1))[0]


async def test_long_scan_of_other_entries_continues_in_the_next_call(
    here: Client, until: Until
) -> None:
    theirs = {
        json.dumps({"class": "K", "args": [n], "queue": "theirs"}): float(n) for n in range(1200)
    }
    await here.redis.zadd(
        "schedule",
        {**theirs, json.dumps({"class": "K", "args": [], "queue": "ours", "jid": "a"}): 5000.0},
    )
    imports = _import_loop(here, format="sidekiq", queues=("ours",), poll=0.01)
    running = asyncio.create_task(imports.run())
    await until(lambda: here.jobs.get("a"))
    imports.stop()
    await running
    assert await here.redis.zcard("schedule") == 1200


async def test_unimportable_entry_is_logged_once_and_blocks_no_other(
    here: Client, lines: Lines
) -> None:
    await here.redis.sadd("queues", "bad", "a\nb", "good")
    await here.redis.set("queue:bad", "no list")
    await here.redis.lpush("queue:a\nb", "{}")
    await here.redis.lpush(
        "queue:good", "broken", json.dumps({"class": "K", "args": [], "jid": "a"})
    )
    imports = _import_loop(here, format="sidekiq")
    assert [await imports.run_once(), await imports.run_once()] == [1, 0]
    assert {line["what"] for line in lines.of("import.unreadable")} == {"bad", "a\nb"} and len(
        lines.of("import.unreadable")
    ) == 2
    (refused,) = lines.of("import.rejected")
    assert refused == {
        "event": "import.rejected", "key": "queue:good", "jid": None,
        "why": "entry is not a JSON object", "level": "error",
    }  # fmt: skip
    assert await here.redis.llen("ql:x:rejected-imports") == 1


async def test_import_continues_after_an_outage(
    here: Client, own_server: OwnServer, lines: Lines, until: Until
) -> None:
    imports = _import_loop(here, poll=0.01, format="sidekiq", queues=("mail",))
    running = asyncio.create_task(imports.run())
    own_server.kill()
    await until(lambda: lines.of("worker.redis_lost"))
    own_server.start()
    async with Redis.from_url(own_server.url) as redis:
        await redis.lpush("queue:mail", json.dumps({"class": "K", "args": [], "jid": "a"}))
        await until(lambda: lines.of("import.completed", jobs=1))
    imports.stop()
    await running


async def test_import_waits_at_the_memory_limit(here: Client, lines: Lines, until: Until) -> None:
    await here.redis.lpush("queue:mail", json.dumps({"class": "K", "args": [], "jid": "a"}))
    await here.redis.config_set("maxmemory", 1)
    imports = _import_loop(here, format="sidekiq", queues=("mail",))
    running = asyncio.create_task(imports.run())
    await until(lambda: lines.of("import.blocked"))
    imports.stop()
    await running
    await here.redis.config_set("maxmemory", 0)
    assert await here.redis.llen("queue:mail") == 1
    assert await imports.run_once() == 1


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"format": "celery"}, "format must be one of sidekiq, exq, resque"),
        ({"format": "exq", "queues": "mail"}, "queues must be a list"),
        ({"format": "exq", "into": "a\n"}, "into"),
        ({"format": "exq", "prefix": "a\n"}, "prefix"),
    ],
    ids=str,
)
def test_invalid_source_is_refused_with_the_reason(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises((ValueError, TypeError), match=why):
        ForeignQueues(**wrong)
