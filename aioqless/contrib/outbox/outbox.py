"""Transactional outbox: a SQLAlchemy transaction writes jobs, a relay puts them after its commit.

Needs `aioqless[sqlalchemy]`.
"""

from __future__ import annotations

import time
from typing import Any

from typing_extensions import Unpack

from aioqless import validation
from aioqless.client import Client, job_data
from aioqless.client.codec import PLAIN, Codec
from aioqless.client.new_job import Klass, NewJob, encode_job
from aioqless.client.put_options import PutOptions
from aioqless.contrib.outbox.relay import OutboxRow, PutRows, TableRelay, write_job
from aioqless.errors import require_extra
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
    from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession
    from sqlalchemy.orm import Session, registry


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
        row = encode_job(new, self._max_data, self._codec)
        entry = self._entry()
        entry.queue = validation.check_name("queue", new.choose_queue(queue))
        entry.job = write_job(row)
        entry.written = time.time()
        session.add(entry)
        return row["jid"]


class Relay(TableRelay):
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
        super().__init__(_EngineTable(outbox.table, engine), client, poll=poll)


class _EngineTable:
    """The table of an outbox in the database of an engine."""

    unavailable = (DBAPIError,)

    def __init__(self, table: Table, engine: AsyncEngine) -> None:
        self._table = table
        self._engine = engine

    async def handle(self, limit: int, put: PutRows) -> int:
        """Put the earliest rows within one transaction; return how many were put or refused."""
        table = self._table
        earliest = select(table).where(table.c.refused.is_(None)).order_by(table.c.id).limit(limit)
        async with self._engine.begin() as transaction:
            found = await transaction.execute(earliest.with_for_update(skip_locked=True))
            rows = [OutboxRow(row.id, row.queue, row.job, row.written) for row in found]
            if not rows:
                return 0
            handled = await put(rows)
            await transaction.execute(delete(table).where(table.c.id.in_(handled.put)))
            for number, why in handled.refused.items():
                await transaction.execute(
                    update(table).where(table.c.id == number).values(refused=why)
                )
            return len(handled.put) + len(handled.refused)
