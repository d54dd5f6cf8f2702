"""Failover by Redis Sentinel under load, and waiting for replicas."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis import exceptions

from aioqless import AioqlessError, Client, Durability
from aioqless.client.events import Put
from aioqless.errors import NotDurable
from aioqless.redis import read_topology
from tests.conftest import Until
from tests.server import OwnServer
from tests.servers.failover import kill_under_load
from tests.servers.load import Load
from tests.servers.processes import SentinelSetup

pytestmark = pytest.mark.long


async def test_workers_and_clients_resume_within_15_s_of_a_failover_under_load(
    tmp_path: Path,
) -> None:
    with SentinelSetup(tmp_path) as watched:
        came = await kill_under_load(watched, Load(watched.url))
    assert came["put again after"] < 15 and came["ran again after"] < 15
    assert came["refused"] == 0  # callers waited, and no put was executed twice
    assert came["put"] >= 1_000


async def test_jobs_that_waited_for_a_replica_survive_a_failover_to_a_lagging_replica(
    tmp_path: Path,
) -> None:
    with SentinelSetup(tmp_path) as watched:
        load = Load(
            watched.url, durability=Durability(replicas=1, timeout=5), size=20_000, works=False
        )
        came = await kill_under_load(watched, load, stall=0.8, jobs=300)
    assert came["lost"] == 0 and came["put"] >= 600


async def test_hanging_master_is_left_for_the_new_one(tmp_path: Path) -> None:
    with SentinelSetup(tmp_path) as watched:
        async with Client(watched.url, timeout=2) as client:
            await client.queue("mail").put("Greet", jid="before")
            hanging = watched.master()
            hanging.suspend()
            began = time.monotonic()
            await client.queue("mail").put("Greet", jid="after")
            assert time.monotonic() - began < 25
            assert (await client.redis.info("server"))["tcp_port"] != hanging.port
            # A new subscription reaches the new master too.
            async with client.events() as events:
                await client.queue("mail").put("Greet", jid="told")
                event = await anext(aiter(events))
                assert isinstance(event, Put) and event.jid == "told"
            hanging.resume()


# Replies of sentinels


@contextlib.asynccontextmanager
async def sentinel_replying(epoch: int, port: int) -> AsyncIterator[str]:
    """Serve a sentinel that knows this number of failovers, and this master."""
    info = [
        "ip",
        "127.0.0.1",
        "port",
        "9999",
        "config-epoch",
        str(epoch),
    ]  # during a failover, sentinels still name the former master
    replies = "".join(
        f"*{len(texts)}\r\n" + "".join(f"${len(each)}\r\n{each}\r\n" for each in texts)
        for texts in (info, ["127.0.0.1", str(port)])
    )

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1000):
            writer.write(replies.encode())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_sentinel_with_the_latest_failover_is_used() -> None:
    async with (
        sentinel_replying(3, 1111) as old,
        sentinel_replying(12, 2222) as new,
        sentinel_replying(4, 3333) as older,
    ):
        assert await read_topology(f"redis+sentinel://{old},{new},{older}/m").find() == (
            "127.0.0.1",
            2222,
        )


async def test_unreachable_sentinel_is_skipped() -> None:
    async with sentinel_replying(3, 1111) as there:
        assert await read_topology(f"redis+sentinel://127.0.0.1:1,{there}/m").find() == (
            "127.0.0.1",
            1111,
        )


async def test_error_without_any_sentinel_names_their_addresses() -> None:
    async with Client("redis+sentinel://127.0.0.1:1,127.0.0.1:2/mymaster", patience=0) as client:
        with pytest.raises(
            exceptions.ConnectionError,
            match=r"can't find Redis by redis\+sentinel://127.0.0.1:1,127.0.0.1:2/mymaster",
        ):
            await client.queue("mail").length()


async def test_unknown_service_is_refused_by_name(own_server: OwnServer) -> None:
    async with Client(
        f"redis+sentinel://127.0.0.1:{own_server.port}/mymaster"
    ) as client:  # a server that is not a sentinel
        with pytest.raises(
            AioqlessError,
            match=r"no sentinel of .* knows the service 'mymaster': .*unknown command",
        ):
            await client.queue("mail").length()


async def test_replica_is_not_used_as_the_master(
    own_server: OwnServer,
) -> None:
    async with Client(own_server.url) as client, sentinel_replying(1, own_server.port) as sentinel:
        await client.redis.replicaof("127.0.0.1", 1)
        async with Client(f"redis+sentinel://{sentinel}/m", patience=0) as led:
            with pytest.raises(exceptions.ConnectionError, match="is a slave"):
                await led.queue("mail").put("Greet")
            await client.redis.replicaof("NO", "ONE")
            assert await led.queue("mail").put("Greet", jid="a") == "a"


# Durability of a write


async def test_write_acknowledged_by_too_few_replicas_raises_although_it_is_executed(
    own_server: OwnServer,
) -> None:
    async with Client(own_server.url, durability=Durability(replicas=1, timeout=0.05)) as client:
        with pytest.raises(
            NotDurable,
            match=r"it is done, but 0 of 1 replicas have it after 0\.05 s: a fail-over now may "
            r"lose it",
        ):
            await client.queue("mail").put("Greet", jid="a")
        assert await client.queue("mail").jids("waiting") == ["a"]


async def test_waiting_for_replicas_does_not_block_other_calls(
    own_server: OwnServer, until: Until
) -> None:
    async with Client(own_server.url) as client:
        await client.queue("mail").put("Greet", jid="first")  # so that the server knows the script
    async with Client(own_server.url, durability=Durability(replicas=1, timeout=3)) as client:
        waiting = asyncio.ensure_future(client.queue("mail").put("Greet", jid="a"))
        await until(lambda: client.jobs.get("a"))
        (popped,) = await client.queue("mail").pop()
        await popped.heartbeat()
        assert not waiting.done()
        with pytest.raises(NotDurable):
            await waiting


async def test_refusal_is_raised_whatever_the_replicas_have(own_server: OwnServer) -> None:
    async with Client(own_server.url, durability=Durability(replicas=1, timeout=0.05)) as client:
        await client.redis.set("ql:j:a", "no hash")
        with pytest.raises(exceptions.ResponseError, match="WRONGTYPE"):
            await client.queue("mail").put("Greet", jid="a")


async def test_durability_is_refused_on_a_server_without_waitaof(
    own_server: OwnServer,
) -> None:
    async with Client(own_server.url, durability=Durability(replicas=0, disk=True)) as client:
        version = (await client.redis.info("server"))["redis_version"]
        if version >= "7.2":
            assert await client.queue("mail").put("Greet", jid="a") == "a"
        else:
            with pytest.raises(AioqlessError, match="needs WAITAOF, which this server refuses"):
                await client.queue("mail").put("Greet", jid="a")


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"replicas": 0}, "waits for nothing"),
        ({"replicas": -1}, "integer >= 0"),
        ({"replicas": True}, "integer"),
        ({"timeout": 0}, "timeout must be finite and >= "),
    ],
)
def test_invalid_durability_is_refused(wrong: dict[str, float], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Durability(**wrong)  # type: ignore[arg-type]


def test_unknown_client_option_is_refused() -> None:
    with pytest.raises(TypeError, match="no option 'durable'; did you mean 'durability'"):
        Client("redis://h", durable=True)  # type: ignore[call-arg]
