"""The handler: it takes many rows, and says which of them were refused."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass

import aioqless
from aioqless import Inject, Job


@dataclass
class Row:
    """A measurement of a sensor."""

    sensor: str
    value: float


sizes: list[int] = []  # of the bulks
one_at_a_time = threading.Lock()  # bulks run in threads, and share a connection


@aioqless.resource
async def database() -> AsyncIterator[sqlite3.Connection]:
    """Open a database in memory."""
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.execute("CREATE TABLE rows (sensor TEXT, value REAL CHECK (value >= 0))")
    yield connection
    connection.close()


@aioqless.bulk_job(queue="rows", size=100, within=0.2, result_ttl=60)
def insert(
    jobs: list[Job[Row]], database: sqlite3.Connection = Inject
) -> list[int | aioqless.Fail]:
    """Insert all rows at once; return how many there are by then."""
    rows = [(job.data.sensor, job.data.value) for job in jobs]
    with one_at_a_time, database:
        database.executemany("INSERT OR IGNORE INTO rows VALUES (?, ?)", rows)
        (count,) = database.execute("SELECT count(*) FROM rows").fetchone()
    sizes.append(len(jobs))
    return [count if value >= 0 else aioqless.Fail("a negative value") for _, value in rows]
