"""Errors that a server replies, and what a call does then."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from redis import exceptions

from aioqless import Client, NewJob, QueueFull
from aioqless.redis.connection import Connection
from aioqless.redis.error_replies import make_error
from tests.client.proxy import Proxy
from tests.server import OwnServer


async def test_full_redis_refuses_puts(own_server: OwnServer) -> None:
    async with Client(own_server.url) as client:
        queue = client.queue("mail")
        await queue.put("Greet")
        await client.redis.config_set("maxmemory", 1)
        with pytest.raises(
            QueueFull,
            match="put: Redis is at its maxmemory and takes nothing new; work jobs off or raise "
            "the limit",
        ):
            await queue.put("Greet")
        with pytest.raises(QueueFull):
            await queue.put_many([NewJob("Greet"), NewJob("Greet")])
        await client.redis.config_set("maxmemory", 0)
        assert await queue.put("Greet")


async def test_server_that_became_a_replica_is_left_for_the_new_master(
    own_server: OwnServer, redis_url: str, client: Client
) -> None:
    """As in a failover: the address leads to another server, and the old one still answers."""
    async with (
        Proxy(own_server.url) as proxy,
        Client(proxy.url, namespace=client.namespace) as away,
    ):
        await away.queue("mail").put("Greet", jid="a")
        async with Client(own_server.url) as old:
            await old.redis.replicaof("127.0.0.1", 1)
        with pytest.raises(exceptions.ConnectionError, match="READONLY"):
            await away.queue("mail").put("Greet", jid="b")
        proxy.upstream = redis_url
        await away.queue("mail").put("Greet", jid="b")
    assert await client.queue("mail").jids("waiting") == ["b"]


async def test_replica_without_its_master_raises_a_connection_error(own_server: OwnServer) -> None:
    async with Client(own_server.url) as client:
        await client.redis.config_set("replica-serve-stale-data", "no")
        await client.redis.replicaof("127.0.0.1", 1)
        with pytest.raises(exceptions.ConnectionError, match="MASTERDOWN"):
            await client.queue("mail").length()


@pytest.mark.parametrize(
    "reply",
    [
        "ASK 11 127.0.0.1:7631",
        "BUSY Redis is busy running a script",
        "CLUSTERDOWN The cluster is down",
        "LOADING Redis is loading the dataset in memory",
        "MASTERDOWN Link with MASTER is down",
        "MISCONF Redis is configured to save RDB snapshots",
        "MOVED 11 127.0.0.1:7631",
        "NOREPLICAS Not enough good replicas to write.",
        "READONLY You can't write against a read only replica.",
        "TRYAGAIN Multiple keys request during rehashing of slot",
    ],
)
def test_reply_of_a_temporary_state_is_a_connection_error(reply: str) -> None:
    error = make_error(reply)
    assert isinstance(error, exceptions.ConnectionError) and str(error) == reply


def test_client_denied_by_the_protected_mode_may_be_admitted_later() -> None:
    """Redis answers so to a client of another host as soon as it connects, and hangs up."""
    error = make_error(
        "DENIED Redis is running in protected mode because protected mode is enabled"
    )
    assert isinstance(error, exceptions.AuthenticationError)


async def test_missing_database_raises(own_server: OwnServer) -> None:
    async with Client(f"{own_server.url}/99") as client:
        with pytest.raises(
            exceptions.ResponseError,
            match=r"Redis at .* refused this client: ERR DB index is out of range",
        ):
            await client.queue("mail").put("Greet")


async def test_wrong_password_raises_without_retries(own_server: OwnServer) -> None:
    async with Client(own_server.url) as client:
        await client.redis.config_set("requirepass", "secret")
    async with Client(own_server.url) as client:
        with pytest.raises(exceptions.AuthenticationError):
            await client.queue("mail").put("Greet")
    async with Client(own_server.url.replace("redis://", "redis://:wrong@")) as client:
        with pytest.raises(
            exceptions.AuthenticationError,
            match=r"Redis at redis://:\*\*\*@.* refused this client: WRONGPASS",
        ):
            await client.queue("mail").put("Greet")
    async with Client(own_server.url.replace("redis://", "redis://:secret@")) as client:
        assert await client.queue("mail").put("Greet")
        assert client.endpoint == {"url": own_server.url}


@pytest.mark.parametrize("word", ["a", "a" * 20_000])
async def test_call_of_many_or_long_words_without_a_password_is_an_authentication_error(
    own_server: OwnServer, word: str
) -> None:
    """Redis doesn't read such a call of a client that hasn't authenticated, and says so oddly.

    A client has one under way whose connection was accepted while a password was set, if another
    is set after it was removed.
    """
    async with Client(own_server.url) as client:
        await client.redis.config_set("requirepass", "secret")
    connection = Connection(own_server.url)  # without a name, and so without a refused handshake
    with pytest.raises(exceptions.AuthenticationError, match="unauthenticated"):
        await connection.execute("EVALSHA", *[word] * (12 if len(word) == 1 else 1))
    await connection.aclose()


async def test_script_error_names_its_file_and_line(client: Client) -> None:
    await client.redis.set(f"{client.namespace}:j:a", "no hash")
    with pytest.raises(exceptions.ResponseError, match=r"^lib/\w+/\w+\.lua:\d+: WRONGTYPE"):
        await client.jobs.get("a")
    with pytest.raises(exceptions.ResponseError, match=r"^lib/\w+/\w+\.lua:\d+: WRONGTYPE"):
        await client.queue("mail").put("Greet", jid="a")


async def test_server_other_than_redis_raises(tmp_path: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, Client(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}") as client:
        with pytest.raises(exceptions.RedisError):
            await client.queue("mail").length()
