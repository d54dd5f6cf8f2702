"""Clients of the code under test use the tests' Redis, and no other."""

from __future__ import annotations

import os
import unittest
from collections.abc import Iterator

import pytest
from redis import Redis, UsernamePasswordCredentialProvider

from aioqless import AioqlessError, Client, Durability, Job, SyncClient, job
from aioqless.contrib.partitions import PartitionedClient
from aioqless.testing import RedisTestMixin, isolate, run_jobs, server

OTHER = "AIOQLESS_TEST_OTHER_REDIS"
elsewhere = SyncClient(os.environ.get(OTHER, "redis://localhost:1"))


@job(klass="Greet")
async def greet(job: Job) -> None: ...


@job(klass="PutInProcess", executor="process")
def put_in_process(job: Job) -> None:
    elsewhere.put("Later", queue="later")


@pytest.fixture
def developers(redis_url: str) -> Iterator[Redis]:
    """The Redis of a developer, in which a test must write nothing."""
    with Redis.from_url(redis_url) as redis:
        redis.flushall()
        yield redis


@pytest.fixture(scope="module")
def another_url() -> Iterator[str]:
    with server() as url:
        yield url


async def test_clients_of_any_url_use_the_redis_of_the_tests(
    developers: Redis, redis_url: str, aioqless_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    early = Client(redis_url)
    with isolate(aioqless_url):
        monkeypatch.setenv("AIOQLESS_URL", redis_url)
        async with Client() as client:
            await greet.put()
            assert client.url == aioqless_url
        async with early as client:
            await client.put(greet.data())
            assert await client.redis.dbsize() > 0
            assert await client.queue("default").length() == 2
        login = UsernamePasswordCredentialProvider("app", "secret")
        async with PartitionedClient(
            redis_url, partitions=2, namespace="parts", credentials=login
        ) as client:
            await client.put(greet.data())
    assert developers.dbsize() == 0
    async with early as client:
        assert client.url == redis_url


def test_synchronous_client_connects_again_before_and_after_the_block(
    developers: Redis, redis_url: str, aioqless_url: str
) -> None:
    client = SyncClient(redis_url)
    client.put("Before")
    with isolate(aioqless_url):
        client.put("Within")
        assert client.call(lambda each: each.queue("default").length()) == 1
    client.put("After")
    assert client.call(lambda each: each.queue("default").length()) == 2
    client.close()


def test_own_servers_are_neither_authenticated_to_nor_asked_for_replicas(aioqless_url: str) -> None:
    credentials = UsernamePasswordCredentialProvider("app", "secret")
    with isolate(aioqless_url):
        client = SyncClient(
            "redis://localhost:1", credentials=credentials, durability=Durability(replicas=1)
        )
        client.put("Within")
    with isolate(aioqless_url):
        client = SyncClient("rediss+sentinel://app:secret@a,b/main")
        client.put("Within")


async def test_client_that_is_connected_elsewhere_is_refused(
    developers: Redis, redis_url: str, aioqless_url: str
) -> None:
    async with Client(redis_url, namespace="before") as client:
        await client.put(greet.data())
        await client.redis.ping()
        pubsub = client.redis.pubsub()
        await pubsub.subscribe("a")
        with isolate(aioqless_url):
            for send in (
                lambda: client.put(greet.data()),
                lambda: client.put_many([greet.data()]),
                lambda: client.redis.set("a", 1),
                lambda: pubsub.subscribe("b"),
            ):
                with pytest.raises(AioqlessError, match="isn't that of the tests") as refused:
                    await send()
                assert f"AIOQLESS_TESTS_ALLOW={redis_url}" in str(refused.value)
        await client.put(greet.data())
        assert await client.queue("default").length() == 2
        await pubsub.aclose()


async def test_allowed_redis_is_neither_replaced_nor_refused(
    developers: Redis, redis_url: str, aioqless_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIOQLESS_TESTS_ALLOW", f"redis://localhost:2/1 {redis_url}")
    async with Client(redis_url) as before:
        await before.put(greet.data())
        with isolate(aioqless_url):
            await before.put(greet.data())
            async with Client(redis_url) as client:
                assert await client.queue("default").length() == 2
            async with Client("redis://localhost:2") as client:  # another database
                assert client.url == aioqless_url


async def test_processes_of_handlers_use_it_too(
    developers: Redis, redis_url: str, aioqless_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(OTHER, redis_url)
    with isolate(aioqless_url):
        async with Client() as client:
            await client.put(put_in_process.data())
            await run_jobs(client, put_in_process)
            assert await client.queue("later").length() == 1
    assert developers.dbsize() == 0


async def test_each_block_begins_with_an_empty_redis(aioqless_url: str) -> None:
    for _ in range(2):
        with isolate(aioqless_url):
            async with Client() as client:
                assert await client.queues() == []
                await client.put(greet.data())


@pytest.mark.parametrize("url", ["redis://localhost:6379", "unix:///run/redis.sock"])
def test_only_a_redis_of_aioqless_testing_is_emptied(url: str) -> None:
    with (
        pytest.raises(ValueError, match=r"only a Redis that aioqless\.testing\.server"),
        isolate(url),
    ):
        raise AssertionError


def test_wrong_list_of_allowed_urls_is_refused(
    aioqless_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIOQLESS_TESTS_ALLOW", "localhost")
    with pytest.raises(ValueError, match="AIOQLESS_TESTS_ALLOW"), isolate(aioqless_url):
        raise AssertionError
    assert "AIOQLESS_TESTS_URL" not in os.environ


def test_mixin_isolates_tests_of_unittest(developers: Redis, redis_url: str) -> None:
    class Tests(RedisTestMixin, unittest.IsolatedAsyncioTestCase):
        async def test_client(self) -> None:
            async with Client(redis_url) as client:
                assert client.url == self.aioqless_url
                await client.put(greet.data())
                assert await client.queue("default").length() == 1

        test_client_again = test_client

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Tests).run(result)
    assert (result.testsRun, result.errors, result.failures) == (2, [], [])
    assert developers.dbsize() == 0


async def test_inner_block_ends_before_the_outer_one(aioqless_url: str, another_url: str) -> None:
    with isolate(aioqless_url):
        with isolate(another_url):
            async with Client() as client:
                assert client.url == another_url
        async with Client() as client:
            assert client.url == aioqless_url
    assert "AIOQLESS_TESTS_URL" not in os.environ
