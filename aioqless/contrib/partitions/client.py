"""PartitionedClient: a client of all partitions of a namespace."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import NoReturn, cast

import msgspec
from msgspec.structs import replace
from typing_extensions import Unpack, override

from aioqless.client import REDIS_UNAVAILABLE, Client, worker_name
from aioqless.client.codec import Codec
from aioqless.client.consistency import Finding
from aioqless.client.jid import Jid
from aioqless.client.job.state import JobSetStatus
from aioqless.client.job_data import MAX_BYTES
from aioqless.client.missing_nodes import MissingNode
from aioqless.client.new_job import Branch, Klass, NewJob, R
from aioqless.client.put_options import FlowOptions, PutOptions
from aioqless.client.put_sender import PutHook
from aioqless.client.queue_statistics import QueueOverview
from aioqless.client.url import find_url
from aioqless.client.workflows import Flow, Step
from aioqless.contrib.partitions.access import AccessOptions, PartitionedAccess
from aioqless.contrib.partitions.nodes import node_of
from aioqless.contrib.partitions.routing import (
    check_count,
    common_partition,
    generate_jid,
    partition_of,
)
from aioqless.contrib.partitions.sender import PartitionedSender
from aioqless.contrib.partitions.shared_config import find_differences
from aioqless.contrib.partitions.store import PartitionedStore
from aioqless.errors import AioqlessError
from aioqless.redis import name_node, slot_of
from aioqless.validation import Seconds


class PartitionedClient(Client):
    """A client of all partitions of a namespace, with the methods of an ordinary one.

    Attributes:
        count: Number of partitions.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        namespace: str | None = None,
        partitions: int | None = None,
        max_data: int = MAX_BYTES,
        name: str | None = None,
        codec: Codec | None = None,
        on_put: Iterable[PutHook] = (),
        **options: Unpack[AccessOptions],
    ) -> None:
        """Make a client; it connects when it is entered.

        Args:
            url: URL of Redis, as for `Client`.
            namespace: Name of the whole; default: AIOQLESS_NAMESPACE, else `ql`.
            partitions: Number of partitions; default: AIOQLESS_PARTITIONS.
            max_data: Maximum size of a job's data, in bytes.
            name: Name of the client, as for `Client`.
            codec: Encodes data and results, as for `Client`.
            on_put: Hooks, as for `Client`.
            options: The other options of `Client`.

        Raises:
            TypeError: An option has the wrong type.
            ValueError: An option is out of range, or there is no number of partitions.
        """
        whole = namespace or os.environ.get("AIOQLESS_NAMESPACE") or "ql"
        name = name or worker_name()
        self.count = _read_count() if partitions is None else check_count(partitions)

        make = partial(Client, name=name, max_data=max_data, codec=codec)
        self._parts = PartitionedAccess(find_url(url), whole, self.count, name, make, options)
        address = self._parts.address
        if self.count > 1 and address is not None and address.kind == "sentinel":
            raise ValueError(
                f"the URL {address} names one master behind sentinels, which {self.count} "
                "partitions can't make faster: name the nodes of a Cluster "
                "(redis+cluster://...), or use an ordinary client"
            )
        super().__init__(
            namespace=whole,
            name=name,
            codec=codec,
            max_data=max_data,
            on_put=on_put,
            access=self._parts,
        )

    @property
    def partitions(self) -> tuple[Client, ...]:
        """The ordinary clients of the partitions."""
        if not self._parts.clients:
            raise RuntimeError("the client isn't connected: use it within `async with`")
        return self._parts.clients

    def partition_of(self, jid: str) -> int:
        """Return the number of the partition that a jid, or a key, belongs to."""
        return partition_of(jid, self.count)

    def jid_for(self, key: str) -> str:
        """Return a new jid in the partition of a key.

        Args:
            key: A partition key, a unique key, a limit key, or another job's jid.
        """
        return generate_jid(self.partition_of(key), self.count)

    async def put(
        self,
        job: str | Klass[R] | NewJob[R],
        data: object = None,
        *,
        queue: str | None = None,
        wait: Seconds = 0,
        partition_key: str | None = None,
        **options: Unpack[PutOptions],
    ) -> Jid[R]:
        """Put (enqueue) one job, as `Client.put` does; a `partition_key` chooses the partition.

        Raises:
            ValueError: Its jid, keys and dependencies belong to several partitions; or as `Client`.
        """
        new = NewJob.of(job, data, options)
        if partition_key is not None:
            jid = new.options.get("jid") or self.jid_for(partition_key)
            common_partition([partition_key, jid], self.count)
            new = new.with_options(jid=jid)
        return await super().put(new, queue=queue, wait=wait)

    async def put_flow(
        self,
        flow: Step,
        *,
        queue: str | None = None,
        wait: Seconds = 0,
        partition_key: str | None = None,
        **options: Unpack[FlowOptions],
    ) -> Flow:
        """Put a workflow, as `Client.put_flow` does; all its jobs are in one partition.

        That is the partition of `partition_key`, or of `once`, which jids have in braces.

        Raises:
            ValueError: The jids and keys of its jobs belong to several partitions; or as `Client`.
        """
        sender = cast(PartitionedSender, self.internals.sender)
        return await sender.put_flow(flow, queue, wait, options, partition_key)

    @override
    def job_set(
        self, name: str, *, then: Branch | None = None, when_ended: Branch | None = None
    ) -> NoReturn:
        """Refuse: a job set and its members are in one Redis.

        Raises:
            AioqlessError: Always.
        """
        raise AioqlessError(
            f"job set {name!r}: a set and its members are in one Redis, so there are no job sets "
            "with partitions: put them with an ordinary client, in a namespace of its own"
        )

    @override
    async def job_sets(self, *, offset: int = 0, count: int = 25) -> list[JobSetStatus]:
        """Return none: there are no job sets with partitions."""
        return []

    @contextmanager
    def partial_reads(self) -> Iterator[list[MissingNode]]:
        """Let reads return what can be reached while a node is away, within the block.

        Without it, reads of all partitions raise the error of the node: counts that lack some jobs
        look like complete ones. Writes, and reads of single jobs, raise within it, too; so do reads
        for which no node is left. A node that is missing isn't asked again within the block.

        Yields:
            The nodes that didn't answer, filled by the reads.

        Example:
            with client.partial_reads() as missing:
                queues = await client.queues()
            for each in missing:
                print(each.node, each.partitions)
        """
        with cast(PartitionedStore, self.internals.store).partial_reads() as missing:
            yield missing

    async def check(
        self, *, resolve: bool = False, step: Callable[[int], object] = lambda _: None
    ) -> list[Finding]:
        """Check all partitions, as `Client.check` does; a node that is away is a problem, too."""
        store = cast(PartitionedStore, self.internals.store)

        async def check_one(number: int) -> list[Finding]:
            own = await self.partitions[number].check(resolve=resolve, step=step)
            return [replace(each, about=each.about | {"partition": number}) for each in own]

        with store.partial_reads() as missing:
            parts = [await store.ask(check_one, [n], partly=True) for n in range(self.count)]
            found = [each for part in parts for own in part for each in own]
            if 0 in (present := store.present()):
                differences = await find_differences(present, resolve=resolve)
                found += map(Finding.from_record, differences)
        return found + [
            Finding(problem="unreachable", fixed=False, about=msgspec.to_builtins(each))
            for each in missing
        ]

    async def measure_partitions(self) -> list[PartitionLoad]:
        """Return where each partition is, and how many jobs it has."""
        assert self._parts.address is not None
        default = name_node(self._parts.address.endpoints[0])

        async def measure(number: int, client: Client) -> PartitionLoad:
            queues: list[QueueOverview] = []
            reachable = False
            with suppress(*REDIS_UNAVAILABLE):
                queues, reachable = await client.queues(), True
            return PartitionLoad(
                number=number,
                namespace=client.namespace,
                slot=slot_of(client.namespace) if "{" in client.namespace else 0,
                node=node_of(client.internals.store.connection) or default,
                reachable=reachable,
                waiting=sum(queue.waiting for queue in queues),
                running=sum(queue.running for queue in queues),
                others=sum(queue.scheduled + queue.depends for queue in queues),
            )

        return await asyncio.gather(*map(measure, range(self.count), self.partitions))


@dataclass(frozen=True, kw_only=True)
class PartitionLoad:
    """A partition: where it is, and how many jobs it has."""

    number: int
    namespace: str
    slot: int
    node: str
    reachable: bool
    waiting: int
    running: int
    others: int  # scheduled, or held by dependencies


def _read_count() -> int:
    text = os.environ.get("AIOQLESS_PARTITIONS")
    if not text:
        raise ValueError("say the number of partitions: partitions=48, or AIOQLESS_PARTITIONS")
    if not text.isdecimal():
        raise ValueError(f"AIOQLESS_PARTITIONS must be an integer (got {text!r})")
    return check_count(int(text))
