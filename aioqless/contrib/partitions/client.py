"""PartitionedClient: a client of all partitions of a namespace."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypedDict, cast

import msgspec
from redis.asyncio import Redis
from redis.credentials import CredentialProvider
from typing_extensions import TypeVar, Unpack

from aioqless.client import Client, CommandConnection
from aioqless.client.codec import Codec
from aioqless.client.consistency import Finding
from aioqless.client.missing_nodes import MissingNode
from aioqless.client.put import Jid, Klass, NewJob, PutSender
from aioqless.client.put_options import OnFailed, PutOptions
from aioqless.client.redis_server import Server
from aioqless.client.workflows import Flow, Step
from aioqless.contrib.partitions.distribution import (
    NodeLoad,
    PartitionLoad,
    measure_nodes,
    measure_partitions,
)
from aioqless.contrib.partitions.queue import PartitionedQueue
from aioqless.contrib.partitions.record import compare_count, record_count, wrong_number
from aioqless.contrib.partitions.routing import (
    check_count,
    generate_jid,
    name_partitions,
    partition_of,
)
from aioqless.contrib.partitions.sender import PartitionedSender
from aioqless.contrib.partitions.store import PartitionedStore
from aioqless.contrib.partitions.subscriber import PartitionedSubscriber
from aioqless.redis import Topology, make_topology
from aioqless.redis.connection import Connection
from aioqless.redis.durability import Durability, DurableWrites
from aioqless.redis.nodes import NodeConnections
from aioqless.redis.pubsub import Subscriber
from aioqless.store import ATTEMPTS, Keys, ScriptStore, TickRow
from aioqless.validation import Seconds

R = TypeVar("R", default=Any)


class ClientOptions(TypedDict, total=False):
    """The options of `Client`."""

    timeout: Seconds | None
    max_data: int
    name: str | None
    patience: Seconds | None
    credentials: CredentialProvider | None
    durability: Durability | None
    codec: Codec | None
    clock: Callable[[], float] | None


class Partition(Client):
    """The client of one partition, which the partitioned client opens and closes.

    It isn't the current client of its event loop.
    """

    def __init__(
        self, url: str | None, store: ScriptStore, **options: Unpack[ClientOptions]
    ) -> None:
        super().__init__(url, namespace=store.namespace, **options)
        self._given = store

    async def open(self) -> None:
        """Open it."""
        await self._start()

    async def aclose(self) -> None:
        """Close it."""
        await self.__aexit__()

    def _shared_store(self) -> ScriptStore:
        return self._given


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
        **options: Unpack[ClientOptions],
    ) -> None:
        """Make a client; it connects when it is entered.

        Args:
            url: URL of Redis, as for `Client`.
            namespace: Name of the whole; default: AIOQLESS_NAMESPACE, else `ql`.
            partitions: Number of partitions; default: AIOQLESS_PARTITIONS.
            options: The other options of `Client`.

        Raises:
            TypeError: An option has the wrong type.
            ValueError: An option is out of range, or there is no number of partitions.
        """
        name = namespace or os.environ.get("AIOQLESS_NAMESPACE") or "ql"
        self.count = _read_count() if partitions is None else check_count(partitions)
        self._first_of_many = name_partitions(name, 2)[0]
        self._namespaces = name_partitions(name, self.count)
        super().__init__(url, namespace=self._namespaces[0], **options)
        if self.count > 1 and self._address is not None and self._address.kind == "sentinel":
            raise ValueError(
                f"the URL {self._address} names one master behind sentinels, which {self.count} "
                "partitions can't make faster: name the nodes of a Cluster "
                "(redis+cluster://...), or use an ordinary client"
            )
        self.namespace = name
        self._options = options
        self._partitions: tuple[Partition, ...] | None = None

    @property
    def partitions(self) -> tuple[Client, ...]:
        """The ordinary clients of the partitions."""
        if self._partitions is None:
            raise RuntimeError("the client isn't connected: use it within `async with`")
        return self._partitions

    def partition_of(self, jid: str) -> int:
        """Return the number of the partition that a jid, or a key, belongs to."""
        return partition_of(jid, self.count)

    def jid_for(self, key: str) -> str:
        """Return a new jid in the partition of a key.

        Args:
            key: A partition key, a unique key, a concurrency key, or another job's jid.
        """
        return generate_jid(self.partition_of(key), self.count)

    def queue(self, name: str) -> PartitionedQueue:
        """Return a queue; it needn't exist yet.

        Args:
            name: Name of the queue.
        """
        return PartitionedQueue(self, self._sender, name)

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
        """Put (enqueue) one job, as `Client.put` does.

        Args:
            job: A handler, its klass, or a new job.
            data: The job's data, unless `job` is a new job.
            queue: Name of the queue; default: the handler's, else "default".
            wait: Time to wait while the queue, or Redis, is full.
            partition_key: Jobs with this key share a partition.
            options: See PutOptions.

        Raises:
            ValueError: Its jid, keys and dependencies belong to several partitions; or as `Client`.
        """
        new = self._sender.place(NewJob.of(job, data, options), partition_key)
        return await super().put(new, queue=queue, wait=wait)

    async def put_flow(
        self,
        flow: Step,
        *,
        queue: str | None = None,
        on_failed: OnFailed | None = None,
        wait: Seconds = 0,
        partition_key: str | None = None,
    ) -> Flow:
        """Put a workflow, as `Client.put_flow` does; all its jobs are in one partition.

        Args:
            flow: A chain, a group or a job.
            queue: Queue of jobs without `in_queue`; default: that of each handler, else "default".
            on_failed: What happens to jobs without a choice of their own if one that they depend on
                fails.
            wait: Time to wait while a queue, or Redis, is full.
            partition_key: Workflows and jobs with this key share a partition.

        Raises:
            ValueError: The jids and keys of its jobs belong to several partitions; or as `Client`.
        """
        placed = self._sender.place_flow(flow, partition_key)
        return await super().put_flow(placed, queue=queue, on_failed=on_failed, wait=wait)

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
        with self._partitioned_store.partial_reads() as missing:
            yield missing

    @property
    def server(self) -> Server:
        """The Redis server of the first partition that can be reached."""
        return Server(self._partitioned_store.first_reachable())

    async def check(
        self, *, resolve: bool = False, step: Callable[[int], object] = lambda _: None
    ) -> list[Finding]:
        """Check all partitions that can be reached, as `Client.check` does.

        Args:
            resolve: Repair what is found; no job is lost.
            step: Called after each call with the number of things it looked at.

        Returns:
            What was found; the problem `unreachable` for each node that wasn't checked.
        """
        with self.partial_reads() as missing:
            found = await super().check(resolve=resolve, step=step)
            away = [
                Finding(problem="unreachable", mended=False, about=msgspec.to_builtins(each))
                for each in missing
            ]
        return found + away

    async def _move_ticks(self, moves: Sequence[TickRow]) -> None:
        of_partition: dict[int, list[TickRow]] = {}
        for row in moves:
            of_partition.setdefault(self.partition_of(row["jid"]), []).append(row)
        for number, rows in of_partition.items():
            await self.partitions[number].store.tick(batch=rows)

    async def measure_partitions(self) -> list[PartitionLoad]:
        """Return where each partition is, and how many jobs it has."""
        assert self._address is not None
        return await measure_partitions(self.partitions, self._address)

    async def measure_nodes(self, loads: Sequence[PartitionLoad]) -> list[NodeLoad]:
        """Return the load of the nodes.

        Args:
            loads: What `measure_partitions` returned.
        """
        return await measure_nodes(self.partitions, loads)

    def dedicated_store(self, name: str, timeout: float) -> ScriptStore:
        """Return a store with connections of its own, for an event loop in another thread.

        Args:
            name: Name of the connections, after that of the client.
            timeout: Seconds for one call, if the client's own timeout isn't shorter.
        """
        timeout = min(timeout, self._timeout)
        connections = self._connections(f"{self._connection_name}.{name}", timeout / ATTEMPTS)
        stores = [
            self._store_of(namespace, connection, timeout)
            for namespace, connection in zip(self._namespaces, connections, strict=True)
        ]
        return cast(ScriptStore, PartitionedStore(stores, clock=self._clock))

    def with_connection(
        self, wrap: Callable[[CommandConnection], CommandConnection]
    ) -> PartitionedClient:
        """Return a view of this client whose commands go over wrapped connections.

        Args:
            wrap: Wraps the connection of each partition.
        """
        stores = [
            self._store_of(store.namespace, wrap(store.connection), self._timeout)
            for store in self._partitioned_store.stores
        ]
        other = copy.copy(self)
        store = cast(ScriptStore, PartitionedStore(stores, clock=self._clock))
        other._connected = other._connect(self.redis, store)  # noqa: SLF001  # of the same class
        return other

    async def aclose(self) -> None:
        """Close the connections."""
        await self.__aexit__()

    async def __aexit__(self, *error: object) -> None:
        await super().__aexit__(*error)
        for partition in self._partitions or ():
            await partition.aclose()
        self._partitions = None

    async def _start(self) -> None:
        await super()._start()
        try:
            await self._compare_count()
            options: ClientOptions = {**self._options, "name": self.name}
            self._partitions = tuple(
                Partition(self.url, store, **options) for store in self._partitioned_store.stores
            )
            for partition in self._partitions:
                await partition.open()
        except BaseException:
            await self.__aexit__()
            raise

    async def _compare_count(self) -> None:
        """Compare the number of partitions with that in Redis, or record it on first use."""
        stores, address = self._partitioned_store.stores, self._address
        assert address is not None
        if self.count == 1:
            other = self._first_of_many
            if recorded := await self._execute("GET", Keys(other)("partitions"), within=other):
                raise wrong_number(self.namespace, int(recorded), 1)
        elif not await compare_count(self.namespace, stores):
            whole = self.namespace
            if address.kind == "cluster" and "{" not in whole:
                whole = f"{{{whole}}}"
            if await self._execute("EXISTS", Keys(whole)("queues"), within=whole):
                raise wrong_number(self.namespace, 1, self.count)
            await record_count(self.namespace, stores)

    async def _execute(self, *command: str | bytes, within: str) -> Any:
        """Send a command to the node of another namespace."""
        assert self._address is not None
        topology = make_topology(self._address, within)
        connection = Connection(topology, timeout=self._timeout / ATTEMPTS)
        try:
            return await connection.execute(*command)
        finally:
            await connection.aclose()

    @property
    def _sender(self) -> PartitionedSender:
        sender = self._open.sender
        assert isinstance(sender, PartitionedSender)
        return sender

    @property
    def _partitioned_store(self) -> PartitionedStore:
        return cast(PartitionedStore, self.store)

    def _shared_store(self) -> ScriptStore:
        name, timeout = self._connection_name, self._timeout
        connections = self._connections(name, timeout / ATTEMPTS)
        durable: list[DurableWrites | None] = [None] * self.count
        if self._durability is not None:
            extra = self._durability.timeout
            dedicated = self._connections(f"{name}.durable", timeout / ATTEMPTS + extra)
            durable = [DurableWrites(each, self._durability) for each in dedicated]
            timeout += extra
        stores = [
            self._store_of(namespace, connection, timeout, writes)
            for namespace, connection, writes in zip(
                self._namespaces, connections, durable, strict=True
            )
        ]
        return cast(ScriptStore, PartitionedStore(stores, clock=self._clock))

    def _store_of(
        self,
        namespace: str,
        connection: CommandConnection,
        timeout: float,
        durable: DurableWrites | None = None,
    ) -> ScriptStore:
        return ScriptStore(
            connection,
            namespace,
            limit=timeout,
            patience=self._patience,
            durable=durable,
            clock=self._clock,
        )

    def _connections(self, name: str, timeout: float) -> list[CommandConnection]:
        """Return the connection of each partition, which those on the same node share."""
        assert self._address is not None
        if self._address.kind == "cluster" and self.count > 1:
            nodes = NodeConnections(self._address, timeout=timeout, name=name)
            return [nodes.of(namespace) for namespace in self._namespaces]
        return [self._connection(name, timeout)] * self.count

    def _topology(self) -> Topology:
        assert self._address is not None
        return make_topology(self._address, self._namespaces[0])

    def _make_subscriber(self, redis: Redis) -> Subscriber:
        return PartitionedSubscriber(redis, self._namespaces[0], lambda: self.partitions)

    def _make_sender(self, store: ScriptStore) -> PutSender:
        return PartitionedSender(
            cast(PartitionedStore, store), self.codec, self.max_data, self._default_context
        )


def _read_count(environ: Mapping[str, str] = os.environ) -> int:
    text = environ.get("AIOQLESS_PARTITIONS")
    if not text:
        raise ValueError("say the number of partitions: partitions=48, or AIOQLESS_PARTITIONS")
    if not text.isdecimal():
        raise ValueError(f"AIOQLESS_PARTITIONS must be an integer (got {text!r})")
    return check_count(int(text))
