"""Transactional outbox of the ORM: jobs are put when a transaction commits, even after a crash."""

from __future__ import annotations

import time

from asgiref.sync import async_to_sync, sync_to_async
from django.db import Error, connections, transaction
from typing_extensions import Unpack

from aioqless import Client, NewJob, validation
from aioqless.client import job_data
from aioqless.client.extensions import codec_from_environment
from aioqless.client.new_job import Klass, encode_job
from aioqless.client.put_options import PutOptions
from aioqless.contrib.django.connections import close_old, own_connections
from aioqless.contrib.django.models import OutboxJob
from aioqless.contrib.outbox.relay import OutboxRow, PutRows, TableRelay, write_job
from aioqless.validation import Seconds


def put(
    job: str | Klass | NewJob,
    data: object = None,
    *,
    queue: str | None = None,
    using: str = "default",
    **options: Unpack[PutOptions],
) -> str:
    """Put a job when the current transaction commits; return its jid immediately.

    `delay` and `expires_in` count from now.

    Args:
        job: A handler, its klass, or a new job.
        data: The job's data, unless `job` is a new job.
        queue: Name of the queue; default: the handler's, else "default".
        using: The alias of the database.
        options: See `PutOptions`.

    Raises:
        InvalidData: Data that can't be stored.
        ValueError: An invalid option.
    """
    new = NewJob.of(job, data, options)
    row = encode_job(new, job_data.MAX_BYTES, codec_from_environment())
    OutboxJob.objects.using(using).create(
        queue=validation.check_name("queue", new.choose_queue(queue)),
        job=write_job(row),
        written=time.time(),
    )
    return row["jid"]


class Relay(TableRelay):
    """Puts the jobs of the outbox, the earliest first, and deletes the rows that Redis has.

    Args:
        client: Puts the jobs.
        using: The alias of the database.
        poll: Seconds between two reads of the table.
    """

    def __init__(self, client: Client, *, using: str = "default", poll: Seconds = 1.0) -> None:
        super().__init__(_ModelTable(using), client, poll=poll)

    async def run(self) -> None:
        """Put jobs until `stop` is called, and through outages of Redis and of the database."""
        async with own_connections():
            await super().run()

    async def once(self) -> int:
        """Put all committed jobs; return how many. Errors of Redis and the database are raised."""
        async with own_connections():
            return await super().once()


class _ModelTable:
    """The table of `OutboxJob`."""

    unavailable = (Error,)

    def __init__(self, using: str) -> None:
        self._using = using

    async def handle(self, limit: int, put: PutRows) -> int:
        """Put the earliest rows within one transaction; return how many were put or refused."""
        return await sync_to_async(self._handle)(limit, put)

    def _handle(self, limit: int, put: PutRows) -> int:
        close_old()
        jobs = OutboxJob.objects.using(self._using)
        features = connections[self._using].features
        with transaction.atomic(using=self._using):
            earliest = jobs.filter(refused=None).order_by("id")[:limit]
            rows = [
                OutboxRow(*each)
                for each in earliest.select_for_update(
                    skip_locked=features.has_select_for_update_skip_locked
                ).values_list("id", "queue", "job", "written")
            ]
            if not rows:
                return 0
            handled = async_to_sync(put)(rows)  # on the loop that waits for this thread
            jobs.filter(id__in=handled.put).delete()
            for number, why in handled.refused.items():
                jobs.filter(id=number).update(refused=why)
            return len(handled.put) + len(handled.refused)
