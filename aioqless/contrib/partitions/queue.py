"""PartitionedQueue: a queue whose jobs are in all partitions."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypeVar, Unpack

from aioqless.client.jid import Jid
from aioqless.client.job.backend import JobBackend
from aioqless.client.put import Klass, NewJob
from aioqless.client.put_options import OnFailed, PutOptions
from aioqless.client.queue import Queue
from aioqless.client.workflows import Flow, Step
from aioqless.contrib.partitions.sender import PartitionedSender
from aioqless.validation import Seconds

R = TypeVar("R", default=Any)


class PartitionedQueue(Queue):
    """A queue whose jobs are in all partitions. Their order holds within a partition."""

    def __init__(
        self, backend: JobBackend, sender: PartitionedSender, name: str, *, worker: str
    ) -> None:
        super().__init__(backend, sender, name, worker=worker)
        self._placing = sender

    async def put(
        self,
        job: str | Klass[R] | NewJob[R],
        data: object = None,
        *,
        wait: Seconds = 0,
        partition_key: str | None = None,
        **options: Unpack[PutOptions],
    ) -> Jid[R]:
        """Put (enqueue) one job, as `Queue.put` does.

        Args:
            job: A handler, its klass, or a new job.
            data: The job's data, unless `job` is a new job.
            wait: Seconds to wait while the queue, or Redis, is full.
            partition_key: Jobs with this key share a partition.
            options: See PutOptions.

        Raises:
            ValueError: Its jid, keys and dependencies belong to several partitions; or as `Queue`.
        """
        new = NewJob.of(job, data, options)
        return await super().put(self._placing.place(new, partition_key), wait=wait)

    async def put_flow(
        self,
        flow: Step,
        *,
        on_failed: OnFailed | None = None,
        wait: Seconds = 0,
        partition_key: str | None = None,
    ) -> Flow:
        """Put a workflow, as `Queue.put_flow` does; all its jobs are in one partition.

        Args:
            flow: A chain, a group or a job. Jobs without `in_queue` come into this queue.
            on_failed: What happens to jobs without a choice of their own if one that they depend on
                fails.
            wait: Seconds to wait while a queue, or Redis, is full.
            partition_key: Workflows and jobs with this key share a partition.

        Raises:
            ValueError: The jids and keys of its jobs belong to several partitions; or as `Queue`.
        """
        placed = self._placing.place_flow(flow, partition_key)
        return await super().put_flow(placed, on_failed=on_failed, wait=wait)
