"""Connection faults: no call is executed twice, and none that succeeded is reported as failed."""

from __future__ import annotations

import asyncio
import random

import pytest
from redis import exceptions

from aioqless import Client, Durability, NewJob
from aioqless.errors import NotDurable, PutManyError
from aioqless.store import ATTEMPTS
from aioqless.store.script_composer import compose
from tests.client.proxy import Proxy
from tests.client.proxy_faults import Fault, load_scripts, over_each_fault
from tests.conftest import Until
from tests.server import OwnServer


@over_each_fault
async def test_put_is_executed_once(
    client: Client, proxied_client: Client, proxy: Proxy, fault: Fault
) -> None:
    await load_scripts(client)
    fault(proxy)
    jid = await proxied_client.queue("mail").put("Greet")
    assert proxy.drop == proxy.cut == proxy.delay == 0
    found = await client.jobs.get(jid)
    assert found and [event["what"] for event in found.events] == ["put"]
    assert await client.queue("mail").length() == 1


@over_each_fault
async def test_reads_are_repeated(
    client: Client, proxied_client: Client, proxy: Proxy, fault: Fault
) -> None:
    await client.queue("mail").put("Greet", jid="a")
    await client.jobs.get("a")
    fault(proxy)
    found = await proxied_client.jobs.get("a")
    assert found and found.jid == "a"


async def test_put_over_a_connection_that_keeps_breaking_raises_and_is_executed_once(
    client: Client, proxied_client: Client, proxy: Proxy
) -> None:
    await load_scripts(client)
    proxy.drop = 3
    with pytest.raises(exceptions.ConnectionError):
        await proxied_client.queue("mail").put("Greet")
    assert await client.queue("mail").length() == 1
    await proxied_client.queue("mail").put("Greet")
    assert await client.queue("mail").length() == 2


async def test_call_to_a_silent_redis_times_out(proxy: Proxy, namespace: str) -> None:
    proxy.delay, proxy.seconds = 10, 30
    async with Client(proxy.url, namespace=namespace, timeout=3) as client:
        with pytest.raises(
            exceptions.TimeoutError, match=f"^Redis at {proxy.url} did not answer in time$"
        ):
            await client.queue("mail").length()


async def test_connection_error_names_the_address_without_the_password(
    proxy: Proxy,
) -> None:
    await proxy.close()
    async with Client(f"redis://user:secret@127.0.0.1:{proxy.port}") as client:
        with pytest.raises(
            exceptions.ConnectionError,
            match=rf"can't connect to Redis at .*127\.0\.0\.1:{proxy.port}",
        ) as told:
            await client.queue("mail").length()
    assert "secret" not in str(told.value)


async def test_client_is_usable_after_a_call_was_canceled_at_any_moment(
    client: Client, proxied_client: Client, proxy: Proxy
) -> None:
    """Replies are not mixed up: each call beside it and after it gets its own reply."""
    chance = random.Random(7)
    mail = proxied_client.queue("mail")
    await load_scripts(client)
    for jid in "abcdef":
        await client.queue("mail").put("Greet", {"jid": jid}, jid=jid)
    for number in range(150):
        calls = [
            mail.put("Greet", jid=f"j{number}"),
            proxied_client.jobs.get("b"),
            mail.length(),
            mail.counts(),
        ]
        victim = asyncio.ensure_future(chance.choice(calls))
        beside = asyncio.ensure_future(proxied_client.jobs.get("c"))
        for call in calls:
            call.close()
        for _ in range(chance.randrange(12)):
            await asyncio.sleep(0)
        victim.cancel()
        await asyncio.wait([victim])
        found, after = await asyncio.gather(beside, proxied_client.jobs.get("d"))
        assert found and after and (found.data, after.data) == ({"jid": "c"}, {"jid": "d"})
    assert proxy.connections == 1
    assert await mail.length() == len(set(await client.queue("mail").jids("waiting", count=1000)))


async def test_closing_the_client_ends_its_connections_and_pending_calls(
    proxy: Proxy, namespace: str, until: Until
) -> None:
    async with Client(proxy.url, namespace=namespace) as client:
        await client.queue("mail").put("Greet")
        proxy.delay, proxy.seconds = 1, 30
        waiting = asyncio.ensure_future(client.queue("mail").put("Greet"))
        await until(lambda: proxy.delay == 0)
    with pytest.raises(exceptions.ConnectionError):
        await waiting
    assert proxy.connections == 1


async def test_put_many_in_an_outage_says_which_jobs_may_be_missing(
    proxied_client: Client, proxy: Proxy, client: Client
) -> None:
    await load_scripts(client)
    jobs = [NewJob("Greet", n) for n in range(180)]
    proxy.about, proxy.drop = compose("put_many", client.namespace).sha.encode(), 2 * ATTEMPTS
    with pytest.raises(PutManyError, match="perhaps put, as the connection broke") as caught:
        await proxied_client.put_many(jobs, queue="mail")
    proxy.drop = 0
    error = caught.value
    assert len(set(error.jids)) == 180 and error.unknown and not error.refused
    assert all(isinstance(each, exceptions.ConnectionError) for each in error.exceptions)
    there = set(await client.queue("mail").jids("waiting", count=1000))
    assert {jid for n, jid in enumerate(error.jids) if n not in error.unknown} <= there
    again = [
        jobs[n].with_options(jid=error.jids[n], if_exists="keep") for n in sorted(error.unknown)
    ]
    await proxied_client.put_many(again, queue="mail")
    there = set(await client.queue("mail").jids("waiting", count=1000))
    assert there == set(error.jids)


async def test_ping_returns_while_redis_answers(proxied_client: Client, proxy: Proxy) -> None:
    await proxied_client.ping()
    await proxy.close()
    with pytest.raises(exceptions.ConnectionError):
        await proxied_client.ping()


async def test_put_many_that_is_not_durable_says_so_for_each_job(own_server: OwnServer) -> None:
    async with Client(own_server.url, durability=Durability(replicas=1, timeout=0.01)) as waiting:
        with pytest.raises(NotDurable):
            await waiting.put("Greet", jid="first", queue="mail")
        jobs = [NewJob("Greet"), NewJob("Greet", jid="x", depends=["x"]), NewJob("Greet")]
        with pytest.raises(
            PutManyError, match=r"1 \(1: x\) refused; 2 \(.*\) put, but not durable yet"
        ) as caught:
            await waiting.queue("mail").put_many(jobs)
    error = caught.value
    assert list(error.refused) == [1] and list(error.not_durable) == [0, 2]
    async with Client(own_server.url) as client:
        there = await client.queue("mail").jids("waiting")
    assert set(there) == {"first", error.jids[0], error.jids[2]}
