"""Random entries of foreign queues: each becomes a job or is set aside, and blocks no other."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from aioqless import Client, Job, Settings, Worker, job
from aioqless.contrib.foreign_queues import ForeignQueues, Format, ImportLoop
from aioqless.worker.context import Outage
from tests.conftest import Until
from tests.security.nasty import TEXTS

EXAMPLES = os.environ.get("AIOQLESS_FUZZ_CALLS")

anything = settings(
    max_examples=int(EXAMPLES or 40),
    derandomize=EXAMPLES is None,
    phases=[Phase.generate] if EXAMPLES is None else [Phase.generate, Phase.shrink],
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from([text.decode("latin-1") for text in TEXTS]),
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
well_formed = {
    "class": st.just("Greet"), "args": st.lists(values, max_size=3),
    "jid": st.text("abc", min_size=1),
    "queue": st.just("mail"), "retry": st.one_of(st.booleans(), st.integers(0, 99)),
    "retry_count": st.integers(0, 30),
    "tags": st.lists(st.text(max_size=5), max_size=3), "wrapped": st.just("Greet"),
    "error_class": st.just("IOError"),
    "error_message": st.text(max_size=9), "failed_at": st.floats(0, 2e12),
    "retried_at": st.floats(0, 2e12),
}  # fmt: skip


@st.composite
def entries(draw: st.DrawFn) -> bytes:
    """An entry as sidekiq pushes it, some of whose members are anything; or noise."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.one_of(st.sampled_from(TEXTS), st.binary(max_size=30)))
    names = draw(st.lists(st.sampled_from(list(well_formed)), unique=True, min_size=1))
    spoiled = draw(st.lists(st.sampled_from(names), unique=True, max_size=2))
    members = {name: draw(values if name in spoiled else well_formed[name]) for name in names}
    return json.dumps(members, ensure_ascii=draw(st.booleans())).encode(errors="surrogatepass")


@anything
@given(data=st.data())
@pytest.mark.parametrize("format", ["sidekiq", "resque"])
def test_every_entry_becomes_a_job_or_is_set_aside(
    redis_url: str, format: Format, data: st.DataObject
) -> None:
    asyncio.run(
        _taken(
            redis_url,
            format,
            data.draw(st.lists(entries(), min_size=1, max_size=12)),
            data.draw(st.lists(entries(), max_size=5)),
        )
    )


async def _taken(url: str, format: Format, waiting: list[bytes], later: list[bytes]) -> None:
    async with Client(url, namespace="other") as client:
        redis = client.redis
        try:
            await redis.sadd("fuzz:queues", "mail")
            await redis.rpush("fuzz:queue:mail", *waiting)
            if later and format == "sidekiq":
                await redis.zadd(
                    "fuzz:retry", {entry: number for number, entry in enumerate(later)}
                )
            pushed = len(waiting) + (await redis.zcard("fuzz:retry"))
            taken = await ImportLoop(
                client, ForeignQueues(format=format, prefix="fuzz"), Outage()
            ).run_once()
            aside = await redis.lrange("other:x:rejected-imports", 0, -1)
            assert (await redis.exists("fuzz:queue:mail", "fuzz:retry"), taken + len(aside)) == (
                0,
                pushed,
            )
            for each in aside:
                told = json.loads(
                    each.decode(errors="surrogateescape")
                )  # it has the entry byte for byte
                assert told["why"] and told["source"].startswith("fuzz:")
            assert await client.check() == []
            for jid in await client.redis.zrange("other:q:mail-work", 0, -1):
                assert await client.jobs.get(jid.decode())
        finally:
            for pattern in ("other:*", "fuzz:*"):
                if found := await redis.keys(pattern):
                    await redis.delete(*found)


@pytest.mark.parametrize("seed", range(3))
async def test_worker_survives_random_entries_and_runs_the_jobs_behind_them(
    client: Client, until: Until, seed: int
) -> None:
    ran: list[Any] = []

    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        ran.append(job.data)

    prefix = f"{client.namespace}-there"
    nasty = TEXTS[seed::3]
    await client.redis.sadd(f"{prefix}:queues", *nasty, "mail")
    for text in nasty:
        for queue in (b"mail", text):
            await client.redis.lpush(
                f"{prefix}:queue:".encode() + queue, b'{"class":"Greet","args":' + text + b"}", text
            )
    await client.redis.lpush(
        f"{prefix}:queue:mail", b'{"class":"Greet","args":["the last"],"jid":"z"}'
    )
    options = Settings(queues=("mail",), poll=0.05)
    parts = [ForeignQueues(format="sidekiq", prefix=prefix)]
    async with Worker(client, greet, settings=options, parts=parts) as worker:
        await until(lambda: ["the last"] in ran)
        assert worker.healthy
    assert await client.check() == []
