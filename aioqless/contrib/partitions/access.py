"""PartitionedAccess: a client of each partition, over connections that they share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, TypedDict, cast

from redis.asyncio import Redis
from redis.credentials import CredentialProvider
from typing_extensions import override

from aioqless.client import Client, CommandConnection
from aioqless.client.access import Connect, RedisAccess
from aioqless.client.job.backend import JobBackend
from aioqless.client.put_sender import PutHook, PutSender
from aioqless.contrib.partitions.nodes import NodeConnections
from aioqless.contrib.partitions.record import compare_count
from aioqless.contrib.partitions.routing import name_partitions
from aioqless.contrib.partitions.sender import PartitionedSender
from aioqless.contrib.partitions.store import PartitionedStore
from aioqless.contrib.partitions.subscriber import PartitionedSubscriber
from aioqless.redis import Durability, Subscriber
from aioqless.store import ScriptStore
from aioqless.validation import Seconds


class AccessOptions(TypedDict, total=False):
    """The options of `Client` that say how it reaches Redis."""

    timeout: Seconds | None
    patience: Seconds | None
    credentials: CredentialProvider | None
    durability: Durability | None
    clock: Callable[[], float] | None


class PartitionedAccess(RedisAccess):
    """Owns the clients of the partitions, and the connections that those on one node share.

    Attributes:
        clients: The clients of the partitions; none while they are closed.
    """

    def __init__(
        self,
        url: str | None,
        namespace: str,
        count: int,
        name: str,
        make_client: Callable[[RedisAccess], Client],
        options: AccessOptions,
    ) -> None:
        self._namespaces = name_partitions(namespace, count)
        super().__init__(url, self._namespaces[0], name, **options)
        self.clients: tuple[Client, ...] = ()
        self._whole = namespace
        self._make_client = make_client
        self._options = options
        self._ways: dict[str, list[CommandConnection]] = {}  # to the partitions, by name

    @override
    async def open(self) -> None:
        await super().open()
        self._ways.clear()
        self.clients = tuple(
            self._make_client(self._of(namespace, partial(self._connect_to, number)))
            for number, namespace in enumerate(self._namespaces)
        )
        try:
            for client in self.clients:
                await client.__aenter__()
            await self._compare_count()
        except BaseException:
            await self.aclose()
            raise

    @override
    async def aclose(self) -> None:
        clients, self.clients = self.clients, ()
        for client in clients:
            await client.__aexit__()

    @override
    def make_store(self) -> ScriptStore:
        return self._unite([client.internals.store for client in self.clients])

    @override
    def make_dedicated_store(self, name: str, timeout: float) -> ScriptStore:
        self._ways.pop(f"{self.name}.{name}", None)  # each has connections of its own
        return self._unite(
            [client.internals.dedicated_store(name, timeout) for client in self.clients]
        )

    @override
    def wrap_store(
        self, store: ScriptStore, wrap: Callable[[CommandConnection], CommandConnection]
    ) -> ScriptStore:
        return self._unite(
            [
                client.internals.access.wrap_store(own, wrap)
                for client, own in zip(self.clients, cast(Any, store).stores, strict=True)
            ]
        )

    @override
    def make_subscriber(self, redis: Redis) -> Subscriber:
        return PartitionedSubscriber(redis, self.clients)

    @override
    def make_sender(self, backend: JobBackend, on_put: Sequence[PutHook]) -> PutSender:
        return PartitionedSender(backend, on_put)

    def _of(self, namespace: str, connect: Connect | None = None) -> RedisAccess:
        """Return the access to one namespace, by connections of its own or as `connect` makes."""
        return RedisAccess(self.url, namespace, self.name, **self._options, connect=connect)

    def _unite(self, stores: Sequence[ScriptStore]) -> ScriptStore:
        return cast(ScriptStore, PartitionedStore(stores, clock=self.clock))

    def _connect_to(self, number: int, name: str, timeout: float) -> CommandConnection:
        """Return the way to a partition over a connection that those on the same node share."""
        if name not in self._ways:
            assert self.address is not None
            if self.address.kind == "cluster" and len(self._namespaces) > 1:
                nodes = NodeConnections(self.address, timeout=timeout, name=name)
                self._ways[name] = [nodes.of(each) for each in self._namespaces]
            else:
                self._ways[name] = [self.connect(name, timeout)] * len(self._namespaces)
        return self._ways[name][number]

    async def _compare_count(self) -> None:
        """Compare the number of partitions with that in Redis, or record it on first use."""
        assert self.address is not None
        name = whole = self._whole
        if self.address.kind == "cluster" and "{" not in whole:
            name = f"{{{whole}}}"
        stores = [client.internals.store for client in self.clients]
        async with aclosing(self._of(name).make_store()) as store:
            await compare_count(whole, store, stores)
