"""One-row inserts into PostgreSQL, singly and in bulks: `python -m tests.bench.bulks [jobs]`.

Both have 20 slots and 20 connections. PostgreSQL runs without fsync, so that the disk doesn't
decide. The processor time is Redis' own, so that other load on the machine doesn't count.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from aioqless import Client, Handler, Inject, Job, Settings, Worker, bulk_job, job, resource
from aioqless.testing import server
from tests.contrib.django.postgresql import running_server
from tests.programs import find

SLOTS = 20
SIZE = 100
BATCH = 1000


@dataclass
class Row:
    number: int
    text: str


class Pool:
    """Connections to the database."""

    def __init__(self) -> None:
        self._free: asyncio.Queue[psycopg.AsyncConnection] = asyncio.Queue()

    def add(self, connection: psycopg.AsyncConnection) -> None:
        self._free.put_nowait(connection)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[psycopg.AsyncConnection]:
        connection = await self._free.get()
        try:
            yield connection
        finally:
            self.add(connection)


@job(klass="single", queue="rows")
async def single(job: Job[Row], pool: Pool = Inject) -> None:
    async with pool.connection() as connection:
        row = (job.data.number, job.data.text)
        await connection.execute("INSERT INTO rows VALUES (%s, %s)", row)


@bulk_job(klass="many", queue="rows", size=SIZE, within=0.5)
async def many(jobs: list[Job[Row]], pool: Pool = Inject) -> None:
    async with pool.connection() as connection:
        rows = [job.data.number for job in jobs], [job.data.text for job in jobs]
        await connection.execute(
            "INSERT INTO rows SELECT * FROM unnest(%s::int[], %s::text[])", rows
        )


async def used_cpu(client: Client) -> float:
    """Return the processor time that Redis has used, in seconds."""
    info = await client.redis.info("cpu")
    return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


async def measure(url: str, folder: Path, handler: Handler, count: int) -> str:
    """Put and run jobs; return the jobs per second and what they cost Redis."""

    def connect() -> Awaitable[psycopg.AsyncConnection]:
        return psycopg.AsyncConnection.connect(host=str(folder), user="postgres", autocommit=True)

    @resource
    async def pool() -> AsyncIterator[Pool]:
        pool = Pool()
        for _ in range(SLOTS):
            pool.add(await connect())
        yield pool

    async with Client(url) as client, await connect() as database:
        await database.execute("DROP TABLE IF EXISTS rows")
        await database.execute("CREATE TABLE rows (number int PRIMARY KEY, text text)")
        start, queue = await used_cpu(client), client.queue("rows")
        for at in range(0, count, BATCH):
            await queue.put_many(handler.data(Row(at + n, "x" * 50)) for n in range(BATCH))
        put, begun = await used_cpu(client), time.perf_counter()
        settings = Settings(concurrency=SLOTS, burst=True)
        await Worker(client, handler, pool, settings=settings).run()
        passed = time.perf_counter() - begun
        ran = await used_cpu(client)
        cursor = await database.execute("SELECT count(*) FROM rows")
        assert await cursor.fetchone() == (count,)
    to_put, to_run = ((put - start) / count * 1e6, (ran - put) / count * 1e6)
    return (
        f"{handler.klass}: {count / passed:,.0f} jobs/s, Redis {to_put:.1f} µs a job to put and "
        f"{to_run:.1f} µs to run"
    )


def main(count: int = 10_000) -> None:
    """Measure both, twice: the first round loads scripts and caches."""
    logging.getLogger("aioqless").setLevel(logging.ERROR)
    with (
        tempfile.TemporaryDirectory() as name,
        running_server(find("postgresql") or "initdb", Path(name)),
    ):
        for _ in range(2):
            handlers: tuple[Handler, ...] = (single, many)
            for handler in handlers:
                with server() as url:
                    print(asyncio.run(measure(url, Path(name), handler, count)), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
