"""Put after commit: jobs that a transaction of SQLAlchemy writes beside its own rows, and a relay
that brings them to Redis.

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
from aioqless.client import REDIS_UNAVAILABLE, Client, json_data
from aioqless.client.codec import PLAIN, Codec
from aioqless.client.put import Klass, NewJob, PreparedJob, PutOptions
from aioqless.errors import QueueFull, require_extra
from aioqless.log import log
from aioqless.waiting import wait_for_event

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


MOST_PER_TRANSACTION = 100
PAUSE_WHEN_AWAY = 5.0


class Outbox:
    """A table of jobs that are still to be put. `metadata`: where it is declared, such as that of
    your models, for Alembic to find it; `codec`: encodes what is written to it."""

    def __init__(
        self,
        metadata: MetaData | None = None,
        *,
        table: str = "aioqless_outbox",
        max_data: int = json_data.LIMIT,
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
            Column(
                "written", Float(53), nullable=False
            ),  # seconds since 1970, by the clock of who wrote it
            Column("refused", Text, nullable=True),  # why it can't be put; nothing is lost
        )
        self._entry: type[Any] = type("OutboxEntry", (), {})
        registry(metadata=self.table.metadata).map_imperatively(self._entry, self.table)

    def put(
        self,
        session: Session | AsyncSession,
        queue: str,
        job: str | Klass | NewJob,
        data: Any = None,
        **options: Unpack[PutOptions],
    ) -> str:
        """Put a job if and when the session's transaction is committed; returns its jid at once.
        Nothing is awaited: the session writes the row with its next flush.

        Raises InvalidData and ValueError as `Queue.put` does. `delay` and `expires_in` count from
        now."""
        arguments = NewJob.of(job, data, options).prepare(self._max_data, self._codec)
        entry = self._entry()
        entry.queue = validation.check_name("queue", queue)
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
    """Puts what an outbox holds, the earliest first, and deletes what Redis has. Owns when it looks
    next.

    A job whose jid is there already is left as it is, so what was put by a relay that died before
    it could delete isn't put again. Any number of relays may run; where the database can skip
    locked rows (PostgreSQL, MySQL 8), each has its own."""

    def __init__(
        self, outbox: Outbox, engine: AsyncEngine, client: Client, *, poll: float = 1.0
    ) -> None:
        self._table = outbox.table
        self._engine = engine
        self._client = client
        self._poll = validation.check_number("poll", poll, least=0.01)
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """`run` returns when the transaction under way has ended."""
        self._stopping.set()

    async def run(self) -> None:
        """Put what comes until told to stop, through outages of Redis and of the database."""
        worked = False
        while not self._stopping.is_set():
            try:
                pause = 0 if await self._portion() else self._poll
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
                pause = PAUSE_WHEN_AWAY
            await wait_for_event(self._stopping, pause)

    async def once(self) -> int:
        """Put all that is committed by now; returns how many jobs. Raises what keeps it from
        that."""
        total = 0
        while done := await self._portion():
            total += done
        return total

    async def _portion(self) -> int:
        """Put the earliest; returns how many rows were dealt with."""
        table = self._table
        async with self._engine.begin() as transaction:
            found = select(table).where(table.c.refused.is_(None)).order_by(table.c.id)
            rows = (
                await transaction.execute(
                    found.limit(MOST_PER_TRANSACTION).with_for_update(skip_locked=True)
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
        """Returns how many were dealt with: those for which there is no room stay as they are."""
        answers = await self._client.queue(queue).put_prepared(
            [_prepared_job(row) for row in rows], keep_existing=True
        )
        if held := [answer for answer in answers if isinstance(answer, QueueFull)]:
            log.error("outbox.blocked", error=str(held[0]))
            rows, answers = _but_held(rows, answers)
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


def _but_held(
    rows: Sequence[Any], answers: list[str | Exception]
) -> tuple[list[Any], list[str | Exception]]:
    dealt = [
        (row, answer)
        for row, answer in zip(rows, answers, strict=True)
        if not isinstance(answer, QueueFull)
    ]
    return [row for row, _ in dealt], [answer for _, answer in dealt]


def _prepared_job(row: Any) -> PreparedJob:
    """What the script takes; times that began when the row was written are shorter by now."""
    job: PreparedJob = json.loads(row.job)
    passed = time.time() - row.written
    job["delay"] = max(0.0, job["delay"] - passed)
    if job["within"] is not None:
        job["within"] = max(0.0, job["within"] - passed)
    return job
