"""Relay: puts the jobs of an outbox, whichever library reads and writes its table."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from redis import exceptions

from aioqless import validation
from aioqless.client import REDIS_UNAVAILABLE, Client, PutManyRow
from aioqless.errors import NotDurable, QueueFull
from aioqless.runtime.log import log
from aioqless.runtime.tasks import wait_for_event
from aioqless.validation import Seconds

MAX_PER_TRANSACTION = 100
PAUSE_WHEN_BLOCKED = 5.0  # seconds

_LATER = (QueueFull, NotDurable, *REDIS_UNAVAILABLE)  # such rows are put again


class OutboxRow(NamedTuple):
    """A job that was not put yet.

    Attributes:
        id: The row's key; rows are put by it.
        queue: Name of the queue.
        job: The arguments of put, as JSON.
        written: When it was written, in seconds since 1970 by the clock of the writing process.
    """

    id: int
    queue: str
    job: str
    written: float


class Handled(NamedTuple):
    """What became of some rows; rows in neither list stay as they are.

    Attributes:
        put: Keys of the rows whose jobs Redis has.
        refused: Why Redis refused the others, by key.
    """

    put: list[int]
    refused: dict[int, str]


PutRows: TypeAlias = Callable[[Sequence[OutboxRow]], Awaitable[Handled]]


class OutboxTable(Protocol):
    """The table of an outbox."""

    @property
    def unavailable(self) -> tuple[type[Exception], ...]:
        """Errors of an outage of the database."""

    async def handle(self, limit: int, put: PutRows) -> int:
        """Put the earliest rows within one transaction.

        Locks the rows and skips rows that another relay has locked. Deletes a row whose job was
        put; stores the reason in a row whose job was refused.

        Returns:
            How many were put or refused.
        """


class TableRelay:
    """Puts the jobs of a table, the earliest first, until it is stopped."""

    def __init__(self, table: OutboxTable, client: Client, *, poll: Seconds = 1.0) -> None:
        self._table = table
        self._client = client
        self._poll = validation.check_seconds("poll", poll, least=0.01)
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Let `run` return after the current transaction."""
        self._stopping.set()

    async def run(self) -> None:
        """Put jobs until `stop` is called, and through outages of Redis and of the database."""
        worked = False
        outages: tuple[type[Exception], ...] = (
            *REDIS_UNAVAILABLE,
            exceptions.NoPermissionError,
            *self._table.unavailable,
            OSError,
            QueueFull,
        )
        while not self._stopping.is_set():
            try:
                pause = 0 if await self._handle_batch() else self._poll
                worked = True
            except outages as error:
                if isinstance(error, exceptions.NoPermissionError) and not worked:
                    raise
                log.error("outbox.blocked", error=str(error))
                pause = PAUSE_WHEN_BLOCKED
            await wait_for_event(self._stopping, pause)

    async def once(self) -> int:
        """Put all committed jobs; return how many. Errors of Redis and the database are raised."""
        total = 0
        while done := await self._handle_batch():
            total += done
        return total

    async def _handle_batch(self) -> int:
        return await self._table.handle(MAX_PER_TRANSACTION, self._put)

    async def _put(self, rows: Sequence[OutboxRow]) -> Handled:
        """Put the jobs of rows, queue by queue."""
        handled = Handled([], {})
        for queue in dict.fromkeys(row.queue for row in rows):
            await self._put_into(queue, [row for row in rows if row.queue == queue], handled)
        return handled

    async def _put_into(self, queue: str, rows: Sequence[OutboxRow], handled: Handled) -> None:
        """Put rows into their queue. They stay if it is full, or their job may not be there."""
        answers = await self._client.queue(queue).put_encoded(
            [read_job(row) for row in rows], keep_existing=True
        )
        first = answers[0]
        if isinstance(first, Exception) and all(isinstance(e, REDIS_UNAVAILABLE) for e in answers):
            raise first
        blocked = put = 0
        for row, answer in zip(rows, answers, strict=True):
            match answer:
                case Exception() if isinstance(answer, _LATER):
                    blocked += 1
                    if blocked == 1:
                        log.error("outbox.blocked", error=str(answer))
                case Exception():
                    log.error("outbox.refused", row=row.id, queue=queue, why=str(answer))
                    handled.refused[row.id] = str(answer)
                case _:
                    put += 1
                    handled.put.append(row.id)
        if put:
            log.info("outbox.put", queue=queue, jobs=put)


def write_job(job: PutManyRow) -> str:
    """Return a job as the column `job` has it."""
    return json.dumps(
        {name: each.decode() if isinstance(each, bytes) else each for name, each in job.items()}
    )


def read_job(row: OutboxRow) -> PutManyRow:
    """Return the job of a row, with delays reduced by the time since the row was written."""
    job: PutManyRow = json.loads(row.job)
    passed = time.time() - row.written
    delay, expires_in = job.get("delay"), job.get("expires_in")
    return {
        **job,
        "delay": max(0.0, delay - passed) if delay else delay,
        "expires_in": None if expires_in is None else max(0.0, expires_in - passed),
    }
