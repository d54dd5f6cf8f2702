"""PartitionedSender: gives each new job its partition, and puts it there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import msgspec

from aioqless.client.codec import Codec
from aioqless.client.put import DefaultContext, NewJob, PreparedJob, PutSender
from aioqless.contrib.partitions.routing import generate_jid, partition_of
from aioqless.contrib.partitions.store import PartitionedStore
from aioqless.validation import Seconds


class PartitionedSender(PutSender):
    """Prepares jobs and sends each to its partition.

    Args:
        store: The commands of the partitioned namespace.
        codec: Encodes the data.
        max_data: Maximum size of a job's data, in bytes.
        default_context: Returns the context of a job that is put without one.
    """

    def __init__(
        self,
        store: PartitionedStore,
        codec: Codec,
        max_data: int,
        default_context: DefaultContext | None = None,
    ) -> None:
        super().__init__(store, codec, max_data, default_context)
        self._count = len(store.stores)
        self._senders = [PutSender(each, codec, max_data) for each in store.stores]

    def prepare(self, job: NewJob) -> PreparedJob:
        """Check and encode a job, and give it a jid of the partition that its keys ask for.

        Raises:
            ValueError: The jid, the keys and the dependencies belong to several partitions.
        """
        row = super().prepare(job)
        if job.options.get("jid") is None:
            for name in _names(row):
                row["jid"] = generate_jid(partition_of(name, self._count), self._count)
                break
        self._check(row)
        return row

    async def put(self, queue: str, job: PreparedJob, wait: Seconds) -> str:
        """Put one job; return its jid."""
        return await self._sender_of(job).put(queue, job, wait)

    async def put_many(
        self, queue: str, jobs: Sequence[PreparedJob], wait: Seconds, *, keep_existing: bool = False
    ) -> list[str | Exception]:
        """Put jobs, those of each partition in calls of a bounded size.

        A partition that can't be reached keeps only its own jobs from being put.
        """
        for job in jobs:
            self._check(job)
        numbers: dict[int, list[int]] = {}
        for number, job in enumerate(jobs):
            numbers.setdefault(partition_of(job["jid"], self._count), []).append(number)
        replies = await asyncio.gather(
            *(
                self._senders[partition].put_many(
                    queue, [jobs[number] for number in own], wait, keep_existing=keep_existing
                )
                for partition, own in numbers.items()
            ),
            return_exceptions=True,
        )
        answers: list[str | Exception] = [""] * len(jobs)
        for own, reply in zip(numbers.values(), replies, strict=True):
            if isinstance(reply, BaseException):
                if len(numbers) == 1 or not isinstance(reply, Exception):
                    raise reply
                for number in own:
                    answers[number] = reply
            else:
                for number, answer in zip(own, reply, strict=True):
                    answers[number] = answer
        return answers

    async def put_flow(self, jobs: Sequence[tuple[str, PreparedJob]], wait: Seconds) -> None:
        """Put jobs, each with its queue, in one step: all of them, or none."""
        await self._sender_of(jobs[0][1]).put_flow(jobs, wait)

    def _sender_of(self, job: PreparedJob) -> PutSender:
        return self._senders[partition_of(job["jid"], self._count)]

    def _check(self, job: PreparedJob) -> None:
        own = partition_of(job["jid"], self._count)
        for name in _names(job):
            if (other := partition_of(name, self._count)) != own:
                raise ValueError(
                    f"job {job['jid']} belongs to partition {own}, and {name!r} to partition "
                    f"{other} of {self._count}: let them share a part in braces"
                )


def _names(job: PreparedJob) -> Iterator[str]:
    """Yield the keys of a job and the jids that it depends on: all must share its partition."""
    if terms := job.get("terms"):
        constraints = msgspec.json.decode(terms)
        yield from (constraints[name] for name in ("unique", "key") if name in constraints)
    yield from job.get("depends") or ()
