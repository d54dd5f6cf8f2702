"""Unique and debounced jobs with failure policies, waits, outbox and import."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine

from aioqless import Client, Job, NewJob, Retry, Settings, Unique, Worker, chain, job
from aioqless.contrib.foreign_queues import ForeignQueues
from aioqless.contrib.outbox import Outbox, Relay
from aioqless.errors import NoResult
from tests.combinations.conftest import existing_job, states
from tests.conftest import Until
from tests.worker.conftest import Lines, Work


@job(klass="Sync", unique=("customer",))
async def sync(job: Job[Any], customer: int, fails: bool = False) -> None:
    if fails and job.remaining == job.retries:
        raise Retry(delay=60)


@pytest.fixture
async def sqlite(tmp_path: Path) -> AsyncIterator[tuple[Outbox, AsyncEngine]]:
    """Return an outbox and the engine of a database that has its table."""
    outbox = Outbox()
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/app.db")
    async with engine.begin() as connection:
        await connection.run_sync(outbox.table.metadata.create_all)
    yield outbox, engine
    await engine.dispose()


async def test_duplicate_job_of_an_outbox_is_skipped_or_refused_by_its_if_exists(
    client: Client, sqlite: tuple[Outbox, AsyncEngine]
) -> None:
    outbox, engine = sqlite
    await client.queue("mail").put(sync.data(customer=7), jid="there")
    async with AsyncSession(engine) as session, session.begin():
        outbox.put(session, sync.data(customer=7), jid="left-out", queue="mail")
        outbox.put(session, sync.data(customer=7), jid="refused", if_exists="raise", queue="mail")
        outbox.put(session, sync.data(customer=8), jid="put", queue="mail")
    assert await Relay(outbox, engine, client).once() == 3
    assert await states(client, "left-out", "refused", "put") == [None, None, "waiting"]
    async with engine.connect() as connection:
        (row,) = await connection.execute(outbox.table.select())
    assert "such a job exists already" in row.refused


async def test_imported_jobs_are_unique_by_jid_only(client: Client) -> None:
    prefix = f"{client.namespace}-exq"
    for jid in ("a", "b"):
        await client.redis.lpush(
            f"{prefix}:queue:mail", f'{{"class": "Sync", "jid": "{jid}", "args": [7]}}'
        )
    await client.redis.sadd(f"{prefix}:queues", "mail")
    settings = Settings(queues=("mail",), burst=True)
    parts = [ForeignQueues(format="exq", prefix=prefix)]
    await Worker(client, sync, settings=settings, parts=parts).run()
    assert await states(client, "a", "b") == ["complete", "complete"]


@job(klass="Index", unique=Unique(("page",), debounce=30, debounce_max=60))
async def index(job: Job[Any], page: int, text: str) -> str:
    if text == "fails":
        raise Retry(delay=60)
    if text == "sleeps":
        await job.sleep("rest", 60)
    return text


async def test_debounced_job_with_a_follow_up_is_superseded_instead_of_retried(
    client: Client, work: Work, until: Until, lines: Lines
) -> None:
    follow_ups: list[str] = []

    @job(klass="Index", unique=Unique(("page",), debounce=0.01), retry_on=OSError, result_ttl=60)
    async def fail_first(job: Job[Any], page: int, text: str) -> str:
        if text == "a":
            follow_ups.append(await client.put(fail_first.data(page=1, text="b")))
            raise OSError("no disk")
        return text

    first = await client.put(fail_first.data(page=1, text="a"))
    async with work(fail_first, queues=("default",)):
        await client.jobs.wait(first, timeout=60)
        (second,) = follow_ups
        assert await client.jobs.result(second, timeout=60) == "b"
    assert [line["why"] for line in lines.of("job.superseded", jid=first)] == ["OSError: no disk"]
    assert not lines.of("job.retried")
    with pytest.raises(NoResult):
        await client.jobs.result(first)


async def test_debounced_jobs_of_an_outbox_are_one_also_when_its_rows_are_put_twice(
    client: Client, sqlite: tuple[Outbox, AsyncEngine]
) -> None:
    outbox, engine = sqlite
    for _ in range(2):
        async with AsyncSession(engine) as session, session.begin():
            first = outbox.put(session, index.data(page=1, text="a"))
            outbox.put(session, index.data(page=1, text="b"))
        async with engine.connect() as connection:
            rows = [tuple(row) for row in await connection.execute(outbox.table.select())]
        assert await Relay(outbox, engine, client).once() == 2
        async with engine.begin() as connection:
            await connection.execute(outbox.table.insert(), [dict(
                zip(outbox.table.c.keys(), row, strict=True)) for row in rows])  # fmt: skip
        assert await Relay(outbox, engine, client).once() == 2
        (jid,) = await client.queue("default").jids("scheduled")
        assert (await existing_job(client, jid)).data["text"] == "b"
    assert jid != first


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"jid": "mine"}, "debounce and jid are mutually exclusive"),
        ({"delay": 5}, "debounce and delay"),
        ({"at": datetime(2040, 1, 1, tzinfo=UTC)}, "debounce and at"),
        ({"depends": ["a"]}, "debounce and depends"),
        ({"if_dependency_fails": "run"}, "debounce and if_dependency_fails"),
        ({"if_exists": "keep"}, "debounce and if_exists"),
    ],
)
async def test_debounce_with_an_option_that_contradicts_it_is_refused(
    client: Client, options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        await client.put(index.data(page=1, text="a"), **options)


async def test_debounce_is_refused_in_workflows_and_for_recurring_jobs(client: Client) -> None:
    with pytest.raises(ValueError, match="steps and recurring jobs have a jid"):
        await client.put_flow(chain(index.data(page=1, text="a")))
    with pytest.raises(ValueError, match="debounce and jid"):
        await client.recur(index.data(page=1, text="a"), every=60, jid="r")
    with pytest.raises(ValueError, match="can't have a unique key with a debounce"):
        job(on_failure=NewJob("Sweep", unique=Unique((), debounce=5)))
