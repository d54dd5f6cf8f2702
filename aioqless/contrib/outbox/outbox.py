"""Transactional outbox: a SQLAlchemy transaction writes jobs, a relay puts them after its commit.

Needs `aioqless[sqlalchemy]`.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any

from redis import exceptions
from typing_extensions import Unpack

from aioqless import validation
from aioqless.client import REDIS_UNAVAILABLE, Client, job_data
from aioqless.client.codec import PLAIN, Codec
from aioqless.client.put import Klass, NewJob, PreparedJob
from aioqless.client.put_options import PutOptions
from aioqless.errors import QueueFull, require_extra
from aioqless.runtime.log import log
from aioqless.runtime.tasks import wait_for_event
from aioqless.validation import Seconds

with require_extra("sqlalchemy"):
    from sqlalchemy import (
        BigInteger,
        Column,
        Float,
        Integer,
        MetaData,
        String,
        Table,
        Text,
        delete,
        select,
        update,
    )
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession
    from sqlalchemy.orm import Session, registry


MAX_PER_TRANSACTION = 100
PAUSE_WHEN_BLOCKED = 5.0


class Outbox:
    """A table of jobs that have not been put yet.

    Args:
        metadata: Declares the table, such as the metadata of your models, so that Alembic finds it.
        table: The table's name.
        max_data: Maximum size of a job's data, in bytes.
        codec: Encodes the data that is written to the table.
    """

    def __init__(
        self,
        metadata: MetaData | None = None,
        *,
        table: str = "aioqless_outbox",
        max_data: int = job_data.MAX_BYTES,
        codec: Codec = PLAIN,
    ) -> None:
        self._max_data = max_data
        self._codec = codec
        self.table = Table(
            table,
            MetaData() if metadata is None else metadata,
            Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
            Column("queue", String(validation.LONGEST), nullable=False),
            Column("job", Text, nullable=False),  # the arguments of put, as JSON
            # seconds since 1970, by the clock of the writing process
            Column("written", Float(53), nullable=False),
            Column("refused", Text, nullable=True),  # why Redis refused it; nothing is lost
        )
        self._entry: type[Any] = type("OutboxEntry", (), {})
        registry(metadata=self.table.metadata).map_imperatively(self._entry, self.table)

    def put(
        self,
        session: Session | AsyncSession,
        job: str | Klass | NewJob,
        data: object = None,
        *,
        queue: str | None = None,
        **options: Unpack[PutOptions],
    ) -> str:
        """Put a job when the session's transaction commits; return its jid immediately.

        Nothing is awaited: the session writes the row with its next flush. `delay` and `expires_in`
        count from now.

        Args:
            session: Writes the row.
            job: A handler, its klass, or a new job.
            data: The job's data, unless `job` is a new job.
            queue: Name of the queue; default: the handler's, else "default".
            options: See PutOptions.

        Raises:
            InvalidData: Data that can't be stored.
            ValueError: An invalid option.
        """
        new = NewJob.of(job, data, options)
        arguments = new.prepare(self._max_data, self._codec)
        entry = self._entry()
        entry.queue = validation.check_name("queue", new.choose_queue(queue))
        entry.job = json.dumps(
            {
                name: each.decode() if isinstance(each, bytes) else each
                for name, each in arguments.items()
            }
        )
        entry.written = time.time()
        session.add(entry)
        return arguments["jid"]


class Relay:
    """Puts the jobs of an outbox, the earliest first, and deletes the rows that Redis has.

    An existing job with the same jid is not changed, so that jobs whose relay died before it could
    delete them are not put twice. Any number of relays may run; on databases that can skip locked
    rows (PostgreSQL, MySQL 8), they work in parallel.

    Args:
        outbox: The table.
        engine: Connects to the database.
        client: Puts the jobs.
        poll: Seconds between two reads of the table.
    """

    def __init__(
        self, outbox: Outbox, engine: AsyncEngine, client: Client, *, poll: Seconds = 1.0
    ) -> None:
        self._table = outbox.table
        self._engine = engine
        self._client = client
        self._poll = validation.check_seconds("poll", poll, least=0.01)
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Let `run` return after the current transaction."""
        self._stopping.set()

    async def run(self) -> None:
        """Put jobs until `stop` is called, and through outages of Redis and of the database."""
        worked = False
        while not self._stopping.is_set():
            try:
                pause = 0 if await self._relay_batch() else self._poll
                worked = True
            except (
                *REDIS_UNAVAILABLE,
                exceptions.NoPermissionError,
                DBAPIError,
                OSError,
                QueueFull,
            ) as error:
                if isinstance(error, exceptions.NoPermissionError) and not worked:
                    raise
                log.error("outbox.blocked", error=str(error))
                pause = PAUSE_WHEN_BLOCKED
            await wait_for_event(self._stopping, pause)

    async def once(self) -> int:
        """Put all committed jobs; return how many. Errors of Redis and the database are raised."""
        total = 0
        while done := await self._relay_batch():
            total += done
        return total

    async def _relay_batch(self) -> int:
        """Put a batch of the earliest jobs; return the number of handled rows."""
        table = self._table
        async with self._engine.begin() as transaction:
            found = select(table).where(table.c.refused.is_(None)).order_by(table.c.id)
            rows = (
                await transaction.execute(
                    found.limit(MAX_PER_TRANSACTION).with_for_update(skip_locked=True)
                )
            ).all()
            of_queue = {
                queue: [row for row in rows if row.queue == queue]
                for queue in dict.fromkeys(row.queue for row in rows)
            }
            return sum(
                [await self._put(transaction, queue, rows) for queue, rows in of_queue.items()]
            )

    async def _put(self, transaction: AsyncConnection, queue: str, rows: Sequence[Any]) -> int:
        """Put rows; return how many were handled. Rows stay if the queue is full."""
        answers = await self._client.queue(queue).put_prepared(
            [_prepared_job(row) for row in rows], keep_existing=True
        )
        if blocked := [answer for answer in answers if isinstance(answer, QueueFull)]:
            log.error("outbox.blocked", error=str(blocked[0]))
            rows, answers = _without_blocked(rows, answers)
        refused = {
            row.id: str(answer)
            for row, answer in zip(rows, answers, strict=True)
            if isinstance(answer, Exception)
        }
        table = self._table
        await transaction.execute(
            delete(table).where(table.c.id.in_([row.id for row in rows if row.id not in refused]))
        )
        for number, why in refused.items():
            log.error("outbox.refused", row=number, queue=queue, why=why)
            await transaction.execute(update(table).where(table.c.id == number).values(refused=why))
        if len(refused) < len(rows):
            log.info("outbox.put", queue=queue, jobs=len(rows) - len(refused))
        return len(rows)


def _without_blocked(
    rows: Sequence[Any], answers: list[str | Exception]
) -> tuple[list[Any], list[str | Exception]]:
    handled = [
        (row, answer)
        for row, answer in zip(rows, answers, strict=True)
        if not isinstance(answer, QueueFull)
    ]
    return [row for row, _ in handled], [answer for _, answer in handled]


def _prepared_job(row: Any) -> PreparedJob:
    """Return the job of a row, with delays reduced by the time since the row was written."""
    job: PreparedJob = json.loads(row.job)
    passed = time.time() - row.written
    if delay := job.get("delay"):
        job["delay"] = max(0.0, delay - passed)
    if (within := job.get("within")) is not None:
        job["within"] = max(0.0, within - passed)
    return job
