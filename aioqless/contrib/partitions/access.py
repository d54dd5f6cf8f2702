"""PartitionedAccess: a client of each partition, over connections that they share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, Self, TypedDict, cast

from redis.asyncio import Redis
from redis.credentials import CredentialProvider
from typing_extensions import override

from aioqless.client import REDIS_UNAVAILABLE, Client, CommandConnection
from aioqless.client.access import RedisAccess
from aioqless.client.job.backend import JobBackend
from aioqless.client.put_sender import PutHook, PutSender
from aioqless.contrib.partitions.nodes import NodeConnections
from aioqless.contrib.partitions.routing import count_key, name_partitions
from aioqless.contrib.partitions.sender import PartitionedSender
from aioqless.contrib.partitions.store import PartitionedStore
from aioqless.contrib.partitions.subscriber import PartitionedSubscriber
from aioqless.errors import AioqlessError
from aioqless.redis import Durability, Subscriber
from aioqless.store import Keys, ScriptStore
from aioqless.validation import Seconds


class WrongPartitions(AioqlessError):
    """The namespace has another number of partitions than the client was given."""

    @classmethod
    def of(cls, namespace: str, recorded: int, given: int) -> Self:
        """Return the error for another number than Redis has."""
        count = "no partitions" if recorded == 1 else f"{recorded} partitions"
        return cls(
            f"namespace {namespace!r} has {count} in Redis, not {given}: open it with "
            f"partitions={recorded}. To change the number, put into a new namespace"
        )


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
        make_client: Callable[..., Client],
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
            self._make_client(
                namespace=namespace,
                access=self._access_to(namespace, connect=partial(self._connect_to, number)),
            )
            for number, namespace in enumerate(self._namespaces)
        )
        try:
            for client in self.clients:
                await client.__aenter__()
            await self._compare_count([client.internals.store for client in self.clients])
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
            [client.internals.access.make_dedicated_store(name, timeout) for client in self.clients]
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

    def _access_to(self, namespace: str, **how: Any) -> RedisAccess:
        return RedisAccess(self.url, namespace, self.name, **self._options, **how)

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

    async def _compare_count(self, stores: Sequence[ScriptStore]) -> None:
        """Compare the number of partitions with that in Redis, or record it on first use.

        Each partition has a record of it, so a node that is down keeps no client from working with
        the others. Without any, the record of the whole namespace decides: the first client wrote
        it.

        Raises:
            WrongPartitions: Redis has another number.
        """
        replies = await _send_each(stores, "GET") if len(stores) > 1 else []
        for reply in replies:
            if isinstance(reply, BaseException) and not isinstance(reply, REDIS_UNAVAILABLE):
                raise reply
        found = [reply for reply in replies if isinstance(reply, bytes)]
        if not found:
            if replies and isinstance(replies[0], BaseException):
                raise replies[0]
            found = await self._count_of_whole(len(stores))
        for recorded in map(int, found):
            if recorded != len(stores):
                raise WrongPartitions.of(self._whole, recorded, len(stores))
        missing = [store for store, reply in zip(stores, replies, strict=False) if reply is None]
        await _send_each(missing, "SET", len(stores), "NX")  # or the next client does

    async def _count_of_whole(self, count: int) -> list[bytes]:
        """Return the record of the whole namespace, which is made for partitions that are new."""
        assert self.address is not None
        is_tagged = self.address.kind == "cluster" and "{" not in self._whole
        name = f"{{{self._whole}}}" if is_tagged else self._whole
        access = self._access_to(name)
        await access.open()
        async with aclosing(access.make_store()) as store:
            execute = store.connection.execute
            recorded = await execute("GET", count_key(name))
            if recorded is None and count > 1:
                if await execute("EXISTS", Keys(name)("queues")):
                    raise WrongPartitions.of(self._whole, 1, count)
                recorded = await execute("SET", count_key(name), count, "NX", "GET")
        return [] if recorded is None else [recorded]


async def _send_each(stores: Sequence[ScriptStore], name: str, *words: int | str) -> list[object]:
    """Send a command about the record of each partition, and return the replies and errors."""
    return await asyncio.gather(
        *(each.connection.execute(name, count_key(each.namespace), *words) for each in stores),
        return_exceptions=True,
    )
