"""PartitionedClient: a client of all partitions of a namespace."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

import msgspec
from msgspec.structs import replace
from typing_extensions import Unpack, override

from aioqless.client import REDIS_UNAVAILABLE, Client, worker_name
from aioqless.client.codec import Codec
from aioqless.client.consistency import Finding
from aioqless.client.job_data import MAX_BYTES
from aioqless.client.new_job import Branch
from aioqless.client.put_sender import PutHook
from aioqless.client.queue_statistics import QueueOverview
from aioqless.client.url import find_url
from aioqless.contrib.partitions.access import AccessOptions, PartitionedAccess
from aioqless.contrib.partitions.nodes import node_of
from aioqless.contrib.partitions.routing import (
    check_count,
    generate_jid_in,
    partition_of,
)
from aioqless.contrib.partitions.sums import add_by_name
from aioqless.errors import AioqlessError
from aioqless.redis import name_node, slot_of


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
        return generate_jid_in(self.partition_of(key), self.count)

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
    async def queues(self, *, offset: int = 0, count: int = 1000) -> list[QueueOverview]:
        """Return the sums of all partitions, as `Client.queues` does."""
        parts = await asyncio.gather(*(each.queues(count=sys.maxsize) for each in self.partitions))
        added = add_by_name(msgspec.to_builtins(parts))
        return msgspec.convert(added[offset : offset + count], list[QueueOverview])

    @override
    async def check(
        self, *, resolve: bool = False, step: Callable[[int], object] = lambda _: None
    ) -> list[Finding]:
        """Check all partitions, one after the other, as `Client.check` does."""
        return [
            replace(found, about=found.about | {"partition": number})
            for number, each in enumerate(self.partitions)
            for found in await each.check(resolve=resolve, step=step)
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
