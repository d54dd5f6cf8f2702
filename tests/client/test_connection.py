"""Connections: options of the URL, timeouts, reconnecting and credentials."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import redis as blocking
from redis import exceptions
from redis.asyncio import Redis
from redis.credentials import CredentialProvider

from aioqless import Client
from aioqless.client.events import Put
from aioqless.redis.connection import Connection
from tests.client.proxy import Proxy
from tests.conftest import Until
from tests.server import OwnServer


@asynccontextmanager
async def silent_server() -> AsyncIterator[str]:
    """Serve connections without ever answering."""
    async with Proxy("redis://127.0.0.1:1") as proxy:

        async def never() -> Any:
            await asyncio.sleep(3600)

        proxy.connect = never  # type: ignore[method-assign]
        yield proxy.url


@pytest.fixture
def full(own_server: OwnServer) -> Iterator[blocking.Redis]:
    """Return a server at its maximum number of clients; `config_set` allows more."""
    with blocking.Redis.from_url(own_server.url) as only:
        only.config_set("maxclients", 1)
        yield only
        only.config_set("maxclients", 100)


# A silent server


async def test_subscription_begun_in_an_outage_works_after_it(
    proxy: Proxy, client: Client, namespace: str
) -> None:
    async with Client(proxy.url, namespace=namespace, timeout=1.5) as behind:
        await client.queue("mail").put("Greet", jid="a")
        await behind.queue("mail").length()
        proxy.silent = True
        waiting = asyncio.ensure_future(behind.jobs.wait("a", timeout=60))
        # long enough for the attempt to have started: a silent server gives no sign
        await asyncio.sleep(0.2)
        proxy.silent = False
        (running,) = await client.queue("mail").pop()
        await running.complete()
        assert (await waiting).state == "complete"


@pytest.mark.parametrize("callers", [1, 50])
async def test_timeout_limits_a_call_with_all_its_retries(
    callers: int,
) -> None:
    async with silent_server() as url, Client(url, timeout=0.6) as client:
        began = time.monotonic()
        came = await asyncio.gather(
            *(client.queue("mail").put("Greet") for _ in range(callers)), return_exceptions=True
        )
        assert time.monotonic() - began < 8
        assert {str(error) for error in came} == {f"can't connect to Redis at {url}: no answer"}
        assert all(isinstance(error, exceptions.ConnectionError) for error in came)


async def test_tls_to_a_server_without_tls_raises_with_the_cause() -> None:
    async with (
        silent_server() as url,
        Client(url.replace("redis://", "rediss://"), timeout=0.6) as client,
    ):
        began = time.monotonic()
        with pytest.raises(
            exceptions.ConnectionError,
            match=r"no answer\. If the server has no TLS, its URL begins with redis",
        ):
            await client.queue("mail").length()
        assert time.monotonic() - began < 8


async def test_reply_that_arrived_while_the_loop_was_blocked_past_the_timeout_is_read(
    redis_url: str,
) -> None:
    connection = Connection(redis_url, timeout=1)
    try:
        await connection.execute("PING")
        answer = asyncio.ensure_future(connection.execute("ECHO", "here"))
        await asyncio.sleep(0)
        time.sleep(1.2)  # noqa: ASYNC251  the point of it
        assert await answer == b"here"
    finally:
        await connection.aclose()


async def test_calls_wait_while_the_send_buffer_is_full(until: Until) -> None:
    """The requests are not buffered in memory."""
    reading, served = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reading.wait()
        while data := await reader.read(1 << 20):
            writer.write(b"+OK\r\n" * data.count(b"END\r\n"))
        writer.close()
        await writer.wait_closed()
        served.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 16)
    connection = Connection(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}", timeout=60)
    async with server:
        sent = []
        for _ in range(100):
            sent.append(
                asyncio.ensure_future(connection.execute("SET", "key", "x" * 1_000_000 + "END"))
            )
            await until(
                lambda: connection._protocol
            )  # in several loop iterations: otherwise they would be one write
            await asyncio.sleep(0.001)
        wire = connection._protocol
        assert wire is not None and wire._transport is not None and not wire.writable.is_set()
        assert wire._transport.get_write_buffer_size() < 5_000_000
        reading.set()
        assert await asyncio.gather(*sent) == [b"OK"] * 100
        await connection.aclose()
        await until(served.is_set)


# Refused for now


@pytest.mark.parametrize("wanted", ["", "/3", "?client_name=me"])
async def test_too_many_clients_counts_as_an_outage(
    own_server: OwnServer, full: blocking.Redis, wanted: str
) -> None:
    async with Client(f"{own_server.url}{wanted}", timeout=2) as client:
        with pytest.raises(exceptions.ConnectionError) as told:
            await client.queue("mail").put("Greet")
        assert not isinstance(told.value, exceptions.AuthenticationError)
        assert "max number of clients" in str(told.value) or "reset" in str(told.value)
        full.config_set("maxclients", 100)
        assert await client.queue("mail").put("Greet", jid="a") == "a"


async def test_busy_redis_counts_as_an_outage_when_connecting(
    own_server: OwnServer, until: Until
) -> None:
    async with Redis.from_url(own_server.url) as other, Redis.from_url(own_server.url) as admin:
        await other.ping()
        await admin.config_set("busy-reply-threshold", 10)
        endless = asyncio.ensure_future(other.eval("while true do end", 0))
        async with Client(f"{own_server.url}/3", timeout=0.9) as client:

            async def busy() -> bool:
                try:
                    await client.queue("mail").length()
                except exceptions.BusyLoadingError as told:
                    return "BUSY" in str(told)
                except exceptions.ConnectionError:
                    return False
                return False

            assert await until(busy)
            await admin.script_kill()
            with pytest.raises(exceptions.ResponseError):
                await endless
            assert await client.queue("mail").length() == 0


# Options


async def names_of(client: Client) -> set[str]:
    return {each["name"] for each in await client.redis.client_list()}


async def test_url_option_names_the_connections(redis_url: str, namespace: str) -> None:
    async with Client(f"{redis_url}?client_name=billing", namespace=namespace, name="me") as client:
        await client.queue("mail").length()
        assert {"billing", "billing.redis"} <= await names_of(client)
    async with Client(redis_url, namespace=namespace, name="me") as client:
        await client.queue("mail").length()
        assert {"me", "me.redis"} <= await names_of(client)


@pytest.mark.parametrize(
    ("said", "kept"), [("", 1), ("?socket_keepalive=true", 1), ("?socket_keepalive=false", 0)]
)
async def test_url_option_sets_tcp_keepalive(own_server: OwnServer, said: str, kept: int) -> None:
    connection = Connection(f"{own_server.url}{said}")
    await connection.execute("PING")
    assert connection._protocol is not None and connection._protocol._transport is not None
    line = connection._protocol._transport.get_extra_info("socket")
    assert bool(line.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)) == bool(kept)
    await connection.aclose()


async def test_url_option_sets_the_connect_timeout() -> None:
    async with (
        silent_server() as url,
        Client(f"{url}?socket_connect_timeout=0.1&socket_timeout=60") as client,
    ):
        began = time.monotonic()
        with pytest.raises(exceptions.ConnectionError, match=r"no answer within 0\.1 s"):
            await client.queue("mail").length()
        with pytest.raises(exceptions.ConnectionError, match=r"no answer within 0\.1 s"):
            async with client.events():
                pass
        assert time.monotonic() - began < 10


class Rotating(CredentialProvider):
    """Provides the password that is valid now."""

    password = ""

    async def get_credentials_async(self) -> tuple[str]:
        return (self.password,)


async def test_credential_provider_is_called_for_each_connection(
    own_server: OwnServer,
) -> None:
    provider = Rotating()
    with blocking.Redis.from_url(own_server.url) as admin:
        for provider.password in ("first", "second"):
            admin.config_set("requirepass", provider.password)
            async with (
                Client(own_server.url, credentials=provider) as client,
                client.events() as events,
            ):
                await client.queue("mail").put("Greet", jid=provider.password)
                event = await anext(aiter(events))
                assert isinstance(event, Put) and event.jid == provider.password


async def test_failing_credential_provider_counts_as_an_outage() -> None:
    class Failing(CredentialProvider):
        async def get_credentials_async(self) -> tuple[str]:
            raise KeyError("no token")

    async with (
        Proxy("redis://127.0.0.1:1") as proxy,
        Client(proxy.url, credentials=Failing(), timeout=1) as client,
    ):
        with pytest.raises(
            exceptions.ConnectionError, match=r"can't connect to Redis at .*no token"
        ):
            await client.queue("mail").length()
