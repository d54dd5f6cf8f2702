"""Jobs with random content in their fields: workers survive and run the jobs behind them."""

from __future__ import annotations

import random
from typing import Any

import pytest

from aioqless import Client, Job, Settings, Worker, job
from tests.conftest import Until
from tests.security.nasty import text

FIELDS = [
    "klass", "data", "priority", "tags", "state", "worker", "expires", "queue", "retries",
    "remaining", "time", "failure",
    "history", "grace", "scheduled", "spawned_from_jid", "x-fence", "x-put", "x-context",
    "x-expiry", "x-after", "x-if-dependency-fails",
    "x-progress", "x-lost", "x-constraints",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
async def test_worker_survives_jobs_with_random_fields(
    client: Client, until: Until, seed: int
) -> None:
    chance, ran = random.Random(seed), []

    @job(klass="Greet")
    async def greet(job: Job[Any], name: str = "") -> None:
        ran.append(job.jid)

    redis, ns = client.redis, client.namespace
    for number in range(12):
        good = {"jid": f"bad-{number}", "klass": "Greet", "data": "{}", "priority": "0",
            "tags": "[]", "state": "waiting", "worker": "",
                "expires": "0", "queue": "mail", "retries": "5", "remaining": "5",
                "time": "1.5"}  # fmt: skip
        bad = {field: text(chance) for field in chance.sample(FIELDS, chance.randint(1, 4))}
        await redis.hset(f"{ns}:j:bad-{number}", mapping={**good, **bad})  # type: ignore[dict-item]
        await redis.zadd(f"{ns}:q:mail-work", {f"bad-{number}": 0})
        if chance.random() < 0.3:
            await redis.rpush(f"{ns}:j:bad-{number}-history", text(chance))
    await client.queue("mail").put(greet, jid="good", priority=5)
    async with Worker(client, greet, settings=Settings(queues=("mail",), poll=0.02)) as worker:
        await until(lambda: "good" in ran)
        assert worker.healthy
    await client.check(resolve=True)
    for number in range(12):
        await client.jobs.get(f"bad-{number}")


@pytest.mark.parametrize(
    "queue", ["{mail}", "mail-work", "a b", "ql:q:mail", "*", "Grüße", "x:fence", "mail-locks"]
)
async def test_queue_may_be_named_like_other_keys(client: Client, queue: str) -> None:
    jid = await client.queue(queue).put("Greet", {"n": 1})
    (mine,) = await client.queue(queue).pop()
    assert mine.jid == jid and await mine.complete() == "complete"
    assert await client.check() == []
