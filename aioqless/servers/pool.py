"""redis-py's connections to wherever the server is now."""

from __future__ import annotations

from typing import Any

from redis import exceptions
from redis.asyncio import Connection, ConnectionPool, Redis, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from aioqless.servers.places import Place

_OURS = ("socket_timeout", "retry_on_timeout", "timeout", "sentinel_username", "sentinel_password")


def redis_at(place: Place) -> Redis:
    """For subscriptions. No blind retries and no time-outs: a subscription waits for as long as nothing happens."""
    address = place.address
    options: dict[str, Any] = {name: value for name, value in address.options.items() if name not in _OURS}
    if isinstance(path := address.endpoints[0], str):
        kind: type[AbstractConnection] = UnixDomainSocketConnection
        options["path"] = path
    else:
        kind = _LedOverTls if address.tls else _Led
        options["place"] = place
    pool = ConnectionPool(connection_class=kind, retry=Retry(NoBackoff(), 0), socket_timeout=None, **options)
    return Redis.from_pool(pool)


class _Led(Connection):
    """A connection that asks where to connect."""

    def __init__(self, *, place: Place, **options: Any) -> None:
        self._place = place
        super().__init__(**options)

    async def _connect(self) -> None:
        endpoint = await self._place.find()
        assert not isinstance(endpoint, str)  # only one server may be at a socket
        self.host, self.port = endpoint
        await super()._connect()  # type: ignore[no-untyped-call]

    async def read_response(self, *args: Any, **options: Any) -> Any:
        try:
            return await super().read_response(*args, **options)
        except (exceptions.ReadOnlyError, exceptions.MovedError) as error:
            await self.disconnect()
            raise exceptions.ConnectionError(f"the server isn't the one to ask any more: {error}") from None


class _LedOverTls(_Led, SSLConnection):
    pass
