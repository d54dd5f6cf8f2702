"""PartitionedQueue: a queue whose jobs are in all partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import TypeVar, Unpack

from aioqless.client.put import Jid, Klass, NewJob
from aioqless.client.put_options import OnFailed, PutOptions
from aioqless.client.queue import Queue
from aioqless.client.workflows import Flow, Step
from aioqless.contrib.partitions.sender import PartitionedSender
from aioqless.validation import Seconds

if TYPE_CHECKING:
    from aioqless.contrib.partitions.client import PartitionedClient

R = TypeVar("R", default=Any)


class PartitionedQueue(Queue):
    """A queue whose jobs are in all partitions. Their order holds within a partition."""

    def __init__(self, client: PartitionedClient, sender: PartitionedSender, name: str) -> None:
        super().__init__(client, sender, name)
        self._client: PartitionedClient = client

    async def put(
        self,
        job: str | Klass[R] | NewJob[R],
        data: object = None,
        *,
        wait: Seconds = 0,
        partition_key: str | None = None,
        **options: Unpack[PutOptions],
    ) -> Jid[R]:
        """Put (enqueue) one job into this queue: see `PartitionedClient.put`."""
        return await self._client.put(
            job, data, queue=self.name, wait=wait, partition_key=partition_key, **options
        )

    async def put_flow(
        self,
        flow: Step,
        *,
        on_failed: OnFailed | None = None,
        wait: Seconds = 0,
        partition_key: str | None = None,
    ) -> Flow:
        """Put a workflow into this queue: see `PartitionedClient.put_flow`."""
        return await self._client.put_flow(
            flow, queue=self.name, on_failed=on_failed, wait=wait, partition_key=partition_key
        )
