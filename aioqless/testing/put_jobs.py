"""What the code under test has put."""

from __future__ import annotations

from typing import Any

import msgspec

from aioqless.client import Client
from aioqless.client.job import JobRecord
from aioqless.client.job.summaries import JobSummary
from aioqless.client.sync_client import SyncClient
from aioqless.errors import AioqlessError
from aioqless.handlers import Handler
from aioqless.lua import constant
from aioqless.redis.server_restriction import restriction
from aioqless.testing.memory_client import MemoryClient, PutJob

JOBS_PER_CALL = 100


def put_jobs(
    client: MemoryClient | SyncClient, klass: Handler[..., Any] | str | None = None
) -> list[PutJob]:
    """Return the jobs that were put, in order.

    Of a client of memory, these are the jobs that were put with it. Of a synchronous client, in an
    isolated test, these are the jobs of its namespace in the tests' Redis, in all states, also
    those of other clients. Their options are those that Redis has and that differ from its
    defaults: `delay` only until they are due, `priority`, `tags`, `retries`, `depends`, `context`,
    `constraints`.

    Args:
        client: The client.
        klass: Only the jobs of this handler or klass.

    Raises:
        TypeError: It is another client; or `klass` is something else.
        AioqlessError: The test of a synchronous client isn't isolated.
    """
    if not isinstance(client, MemoryClient | SyncClient):
        raise TypeError(
            "put_jobs needs a MemoryClient or a SyncClient; jobs of other clients are in Redis: "
            f"client.queue(name).jids('waiting') lists them (got {client!r})"
        )
    if isinstance(klass, Handler):
        klass = klass.klass
    if klass is not None and not isinstance(klass, str):
        raise TypeError(f"klass must be a handler or the name of a klass (got {klass!r})")
    if isinstance(client, SyncClient):
        if restriction.url is None:
            raise AioqlessError(
                "put_jobs reads the jobs of a SyncClient from the tests' Redis: use the fixture "
                "aioqless_redis, or aioqless.testing.RedisTestMixin"
            )
        puts = client.call(_read)
    else:
        puts = client.puts
    return [put for put in puts if klass in (None, put.klass)]


async def _read(client: Client) -> list[PutJob]:
    found: list[tuple[float, PutJob]] = []
    async for page in client.jobs.filter("", count=JOBS_PER_CALL):
        summaries = {each.jid: each for each in await client.jobs.summaries(*page.jids)}
        for record in await client.jobs.multiget(*page.jids):
            summary = summaries[record.jid]
            put = record.events[0]["when"] if record.events else summary.time
            found.append((put, _put_job(record, summary)))
    return [put for _, put in sorted(found, key=lambda each: each[0])]


def _put_job(record: JobRecord, summary: JobSummary) -> PutJob:
    options: dict[str, Any] = {
        "delay": round(summary.due - summary.time, 3) if record.state == "scheduled" else None,
        "priority": record.priority or None,
        "tags": record.tags,
        "retries": None if record.retries == constant("DEFAULT_RETRIES") else record.retries,
        "depends": record.dependencies,
        "context": record.context,
        "constraints": record.constraints and msgspec.json.decode(record.constraints),
    }
    given = {name: value for name, value in options.items() if value not in (None, [], {})}
    return PutJob(record.klass, record.data, record.last_queue, given, record.jid)
