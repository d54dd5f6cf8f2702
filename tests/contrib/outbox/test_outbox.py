"""Transactional outbox: jobs are put once, if their transaction is committed."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from sqlalchemy import create_engine, func, select
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from aioqless import Client, Durability, InvalidData, Job, job
from aioqless.contrib.outbox import Outbox, Relay
from tests.conftest import Until, existing_job
from tests.contrib.django.postgresql import running_server
from tests.server import OwnServer
from tests.worker.conftest import Lines, lines

__all__ = ["lines"]

ROOT = Path(__file__).parents[3]


class Model(DeclarativeBase):
    pass


class Order(Model):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)


outbox = Outbox(Model.metadata)


@job(klass="Greet", retries=2)
async def greet(job: Job, name: str) -> None: ...


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[AsyncEngine]:
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/app.db")
    async with engine.begin() as transaction:
        await transaction.run_sync(Model.metadata.create_all)
    yield engine
    await engine.dispose()


@pytest.fixture
def relay(engine: AsyncEngine, client: Client) -> Relay:
    return Relay(outbox, engine, client, poll=0.01)


async def left(engine: AsyncEngine) -> int:
    """Return the number of rows in the outbox."""
    async with engine.connect() as connection:
        return int(
            (await connection.execute(select(func.count()).select_from(outbox.table))).scalar_one()
        )


async def put(engine: AsyncEngine, *args: Any, **options: Any) -> str:
    """Put one job in its own transaction."""
    async with AsyncSession(engine) as session, session.begin():
        return outbox.put(session, *args, **options)


async def test_job_is_put_when_its_transaction_is_committed(
    engine: AsyncEngine, client: Client, relay: Relay
) -> None:
    async with AsyncSession(engine) as session, session.begin():
        session.add(Order(id=1))
        jid = outbox.put(
            session,
            greet,
            {"name": "Ann"},
            queue="mail",
            priority=-3,
            tags=["x"],
            context={"trace": "1"},
        )
        await session.flush()
        assert await client.jobs.get(jid) is None
    assert await relay.once() == 1
    found = await existing_job(client, jid)
    assert (found.klass, found.data, found.priority, found.retries, found.tags) == (
        "Greet",
        {"name": "Ann"},
        -3,
        2,
        ["x"],
    )
    assert found.context == {"trace": "1"}
    assert (await left(engine), await relay.once()) == (0, 0)


async def test_job_of_a_rolled_back_transaction_is_not_put(
    engine: AsyncEngine, client: Client, relay: Relay
) -> None:
    async with AsyncSession(engine) as session:
        jid = outbox.put(session, greet, {"name": "Ann"}, queue="mail")
        await session.flush()
        await session.rollback()
    assert await relay.once() == 0
    assert await client.jobs.get(jid) is None


async def test_synchronous_sessions_can_put(
    engine: AsyncEngine, client: Client, relay: Relay, tmp_path: Path
) -> None:
    sync = create_engine(f"sqlite:///{tmp_path}/app.db")
    with Session(sync) as session, session.begin():
        jids = [outbox.put(session, "K", n, queue="mail") for n in range(3)]
    sync.dispose()
    assert await relay.once() == 3
    assert [each.jid for each in await client.queue("mail").peek()] == jids


async def test_jobs_are_put_in_the_order_of_the_rows(
    engine: AsyncEngine, client: Client, relay: Relay
) -> None:
    async with AsyncSession(engine) as session, session.begin():
        jids = {queue: [] for queue in ("mail", "post")}  # type: dict[str, list[str]]
        for number in range(150):
            for queue, put in jids.items():
                put.append(outbox.put(session, "K", number, queue=queue))
    assert await relay.once() == 300
    for queue, put in jids.items():
        assert [each.jid for each in await client.queue(queue).peek(count=200)] == put


async def test_delay_counts_from_the_put_into_the_outbox(
    engine: AsyncEngine, client: Client, relay: Relay
) -> None:
    await put(engine, "Soon", delay=0.001, queue="mail")
    later = await put(engine, "Later", delay=1000, queue="mail")
    await relay.once()
    assert [each.klass for each in await client.queue("mail").peek()] == ["Soon"]
    assert await client.queue("mail").jids("scheduled") == [later]


async def test_invalid_job_is_refused_before_the_row_is_written(engine: AsyncEngine) -> None:
    with pytest.raises(InvalidData, match="Greet can't take this data"):
        await put(engine, greet, {"name": 3}, queue="mail")
    with pytest.raises(ValueError, match="queue"):
        await put(engine, greet, {"name": "Ann"}, queue="")
    assert await left(engine) == 0


async def test_refused_job_stays_in_the_table_with_the_reason_and_blocks_no_other(
    engine: AsyncEngine, client: Client, relay: Relay, lines: Lines
) -> None:
    await put(engine, "K", jid="itself", depends=["itself"], queue="mail")
    await put(engine, "K", jid="good", queue="mail")
    assert await relay.once() == 2
    assert [each.jid for each in await client.queue("mail").peek()] == ["good"]
    async with engine.connect() as connection:
        (row,) = (await connection.execute(select(outbox.table))).all()
    assert "itself" in row.refused
    assert len(lines.of("outbox.refused", queue="mail")) == 1
    assert await relay.once() == 0


async def test_job_is_not_put_again_after_a_relay_crashed_before_deleting_the_row(
    engine: AsyncEngine, client: Client, relay: Relay
) -> None:
    done, running = [await put(engine, "K", n, queue="mail") for n in (1, 2)]
    async with engine.connect() as connection:
        rows = (await connection.execute(select(outbox.table))).mappings().all()
    await relay.once()
    first, second = await client.queue("mail").pop(2)
    assert (first.jid, second.jid) == (done, running)
    await first.complete()
    async with engine.begin() as transaction:
        await transaction.execute(outbox.table.insert(), [dict(row) for row in rows])
    assert await relay.once() == 2
    assert [(await client.jobs.get(jid)).state for jid in (done, running)] == [
        "complete",
        "running",
    ]
    assert await left(engine) == 0


async def test_jobs_wait_in_the_table_during_an_outage(
    engine: AsyncEngine,
    own_server: OwnServer,
    lines: Lines,
    until: Until,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("aioqless.contrib.outbox.relay.PAUSE_WHEN_BLOCKED", 0.05)
    async with Client(own_server.url) as client:
        await client.queues()
        relay = Relay(outbox, engine, client, poll=0.01)
        own_server.kill()
        jid = await put(engine, "K", queue="mail")
        running = asyncio.create_task(relay.run())
        await until(lambda: lines.of("outbox.blocked"))
        assert await left(engine) == 1
        own_server.start()
        await until(lambda: lines.of("outbox.put", jobs=1))
        relay.stop()
        await running
        assert await client.jobs.get(jid)


async def test_row_of_a_job_that_is_not_durable_yet_stays(
    engine: AsyncEngine, own_server: OwnServer, lines: Lines
) -> None:
    durability = Durability(replicas=1, timeout=0.01)
    async with Client(own_server.url, durability=durability) as client:
        jid = await put(engine, "K", queue="mail")
        assert await Relay(outbox, engine, client).once() == 0
        assert lines.of("outbox.blocked") and not lines.of("outbox.refused")
        assert await client.jobs.get(jid) and await left(engine) == 1


async def test_several_relays_share_the_rows_of_postgresql_through_asyncpg(
    client: Client, postgresql_program: str
) -> None:
    with TemporaryDirectory() as folder, running_server(postgresql_program, Path(folder)):
        engine = create_async_engine(f"postgresql+asyncpg://postgres@/postgres?host={folder}")
        async with engine.begin() as transaction:
            await transaction.run_sync(Model.metadata.create_all)
        async with AsyncSession(engine) as session, session.begin():
            jids = [outbox.put(session, "K", n, queue="mail") for n in range(250)]
        async with AsyncSession(engine) as session:
            outbox.put(session, "K", queue="mail")
            await session.flush()
            await session.rollback()
        await asyncio.gather(*(Relay(outbox, engine, client).once() for _ in range(3)))
        assert {each.jid for each in await client.queue("mail").peek(count=300)} == set(jids)
        assert (await client.queue("mail").length(), await left(engine)) == (250, 0)
        await engine.dispose()


async def test_killed_relay_loses_and_doubles_nothing(
    engine: AsyncEngine, client: Client, redis_url: str, tmp_path: Path, until: Until
) -> None:
    command = [
        sys.executable,
        "-m",
        "aioqless",
        "outbox",
        f"sqlite+aiosqlite:///{tmp_path}/app.db",
        "--poll",
        "0.01",
        "--log-level",
        "error",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "AIOQLESS_URL": redis_url}

    async def start() -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *command, "--namespace", client.namespace, env=environment
        )

    async def there(count: int) -> bool:
        return (await client.queue("mail").counts()).waiting >= count

    async with AsyncSession(engine) as session, session.begin():
        jids = [outbox.put(session, "K", n, queue="mail") for n in range(999)]
    for reached in (1, 500):
        process = await start()
        await until(lambda reached=reached: there(reached), 30)
        process.kill()
        await process.wait()
    async with AsyncSession(engine) as session, session.begin():
        # The killed one may have put all others.
        jids.append(outbox.put(session, "K", queue="mail"))
    process = await start()
    await until(lambda: there(1000), 30)
    process.terminate()
    assert await process.wait() == 0
    assert {each.jid for each in await client.queue("mail").peek(count=1001)} == set(jids)


async def _outbox(*arguments: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "aioqless", "outbox", *arguments,
        stderr=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    _, err = await process.communicate()
    return process.returncode or 0, err.decode()


async def test_unusable_database_is_refused_with_the_reason(redis_url: str, tmp_path: Path) -> None:
    for database, why in (
        ("sqlite:///app.db", "async"),
        ("nothing", "Could not parse"),
        (f"sqlite+aiosqlite:///{tmp_path}/empty.db", "no such table: aioqless_outbox"),
    ):
        code, err = await _outbox(database, "--once", "--url", redis_url)
        assert code == 1
        assert why in err and "Traceback" not in err
