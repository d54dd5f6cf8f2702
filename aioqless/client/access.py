"""RedisAccess: how a client reaches Redis, by which connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeAlias

from redis import exceptions
from redis.asyncio import Redis
from redis.credentials import CredentialProvider

from aioqless import validation
from aioqless.client.extensions import ensure_private_server
from aioqless.client.job.backend import JobBackend
from aioqless.client.put_sender import PutHook, PutSender
from aioqless.errors import ServerUnavailable
from aioqless.redis.address import Address
from aioqless.redis.connection import CommandConnection, Connection
from aioqless.redis.durability import Durability, DurableWrites
from aioqless.redis.pubsub import Subscriber
from aioqless.redis.redis_py import Topology, make_redis
from aioqless.redis.server_restriction import restriction
from aioqless.redis.topology import make_topology
from aioqless.store import ATTEMPTS, ScriptStore
from aioqless.validation import Seconds

TIMEOUT = 30.0
FAIL_OVER_TIMEOUT = 15.0  # with Sentinel or Cluster, where another server takes over
FAIL_OVER_PATIENCE = 15.0

# Makes a connection: its name, and the seconds that each reply may take.
Connect: TypeAlias = Callable[[str, float], CommandConnection]


class RedisAccess:
    """Makes the stores, the subscriptions and the senders of one client.

    Attributes:
        url: URL of Redis; None for the private server before it is started. Within a test, an open
            client has that of the tests' Redis.
        address: The parsed URL.
        timeout: Seconds for one call.
        private: What logs say of the private server, if it is used.
        is_shared: Whether its connections are those of another client, with which handlers put.

    Args:
        url: URL of Redis.
        namespace: Prefix of all keys.
        name: Name of the client.
        timeout: As for `Client`.
        patience: As for `Client`.
        credentials: As for `Client`.
        durability: As for `Client`.
        clock: As for `Client`.
        connect: Makes connections that other clients share; default: one of its own.

    Raises:
        TypeError, ValueError: As for `Client`.
    """

    def __init__(  # noqa: PLR0913  # those of a client; all but the first three by name
        self,
        url: str | None,
        namespace: str,
        name: str,
        *,
        timeout: Seconds | None = None,
        patience: Seconds | None = None,
        credentials: CredentialProvider | None = None,
        durability: Durability | None = None,
        clock: Callable[[], float] | None = None,
        connect: Connect | None = None,
    ) -> None:
        self._own_url = self.url = url
        self.namespace = namespace
        self._credentials = credentials
        self._own_address = self.address = self._read_address()
        self._is_redirected = False
        options = self.address.options if self.address else {}
        fails_over = self.address is not None and self.address.kind != "server"
        if timeout is None:
            timeout = options.get("socket_timeout", FAIL_OVER_TIMEOUT if fails_over else TIMEOUT)
        if patience is None:
            patience = FAIL_OVER_PATIENCE if fails_over else 0.0
        self.timeout = validation.check_seconds("timeout", timeout, least=0.001)
        self._patience = validation.check_seconds("patience", patience)
        self.private: dict[str, str] = {}
        self.is_shared = connect is not None
        self.clock = clock
        self._durability = durability
        self._connect = connect or self.connect
        self.name = str(options.get("client_name", name))

    async def open(self) -> None:
        """Choose the server: that of the URL, without one the private server, which is started.

        Within a test it is the tests' Redis, which needs no login, and has no replicas.
        """
        tests = restriction.redirect(self._own_address)
        self._is_redirected, self.private = tests is not None, {}
        if tests is not None:
            self.url, self.address = tests, Address.parse(tests)
        elif self._own_url is None:
            await self._ensure_private()
        else:
            self.url, self.address = self._own_url, self._own_address

    async def aclose(self) -> None:
        """Close what `open` has opened, after the client."""

    def make_redis(self) -> Redis:
        """Return a redis-py client."""
        return make_redis(
            self._topology(),
            connect_timeout=self.timeout / ATTEMPTS,
            reply_timeout=self.timeout,
            name=f"{self.name}.redis",
        )

    def make_store(self) -> ScriptStore:
        """Return the store that all parts of the client share."""
        name, timeout = self.name, self.timeout
        connection, durable = self._connect(name, timeout / ATTEMPTS), None
        if isinstance(connection, Connection):
            connection.bind(asyncio.get_running_loop())
        if self._durability is not None and not self._is_redirected:
            extra = self._durability.timeout
            dedicated = self._connect(f"{name}.durable", timeout / ATTEMPTS + extra)
            if isinstance(dedicated, Connection):
                dedicated.bind(asyncio.get_running_loop())
            durable, timeout = DurableWrites(dedicated, self._durability), timeout + extra
        return self._store_over(connection, timeout, durable)

    def make_dedicated_store(self, name: str, timeout: float) -> ScriptStore:
        """Return a store with a connection of its own, for an event loop in another thread.

        It connects when it is first used. The caller closes it.

        Args:
            name: Name of the connection, after that of the client.
            timeout: Seconds for one call, if the client's own timeout isn't shorter.
        """
        timeout = min(timeout, self.timeout)
        connection = self._connect(f"{self.name}.{name}", timeout / ATTEMPTS)
        return self._store_over(connection, timeout)

    def wrap_store(
        self, store: ScriptStore, wrap: Callable[[CommandConnection], CommandConnection]
    ) -> ScriptStore:
        """Return a store over the wrapped connection of another."""
        return self._store_over(wrap(store.connection), self.timeout)

    def make_subscriber(self, redis: Redis) -> Subscriber:
        """Return what subscribes to the channels of the namespace."""
        return Subscriber(redis, self.namespace)

    def make_sender(self, backend: JobBackend, on_put: Sequence[PutHook]) -> PutSender:
        """Return what encodes and puts jobs."""
        return PutSender(backend, on_put)

    def connect(self, name: str, timeout: float) -> CommandConnection:
        """Return a connection of its own, which connects when it is first used.

        Args:
            name: Its name in Redis.
            timeout: Seconds that each reply may take.
        """
        before = self._rejoin_private if self.private else None
        return Connection(self._topology(), timeout=timeout, name=name, before_connect=before)

    def _read_address(self) -> Address | None:
        """Parse the URL, and check that it fits the namespace."""
        address = None if self.url is None else Address.parse(self.url, self._credentials)
        if address is not None:
            make_topology(address, self.namespace)
        return address

    def _topology(self) -> Topology:
        """Return the topology for one connection, which learns of a fail-over on its own."""
        assert self.address is not None
        return make_topology(self.address, self.namespace)

    def _store_over(
        self, connection: CommandConnection, timeout: float, durable: DurableWrites | None = None
    ) -> ScriptStore:
        return ScriptStore(
            connection,
            self.namespace,
            limit=timeout,
            patience=self._patience,
            durable=durable,
            clock=self.clock,
        )

    async def _ensure_private(self) -> None:
        """Start the private server unless it runs."""
        self.url, self.private = await asyncio.to_thread(ensure_private_server)
        self.address = self._read_address()

    async def _rejoin_private(self) -> None:
        """Start the private server before a connection; failing to counts as an outage."""
        try:
            await self._ensure_private()
        except ServerUnavailable as error:
            raise exceptions.ConnectionError(str(error)) from None
