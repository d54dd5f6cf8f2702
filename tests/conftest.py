"""Fixtures of all tests: a real Redis server, and a namespace for each test."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import redis as blocking
from hypothesis import HealthCheck, settings
from redis.asyncio import Redis
from xdist.remote import Producer

from aioqless import Client, JobRecord
from aioqless.redis.connection import Connection
from aioqless.store import ScriptStore
from aioqless.testing import server
from tests import programs
from tests.server import OwnServer
from tests.sharing import ByFile, group_of

Until: TypeAlias = Callable[..., Awaitable[Any]]

NAMESPACE = "test"

# A machine that stalls makes any example slow.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(programs)  # its fixtures


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without the garbage collector, which also leaves them alone afterwards.

    The tests and their modules stay until the end; to search them takes 0.3 seconds each time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before pytest deselects by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if programs.is_needed_by(item):
            item.add_marker(pytest.mark.program)
    items.sort(key=lambda item: group_of(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    return ByFile(config, log)


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """Start a server for the session and return its URL."""
    with server() as url:
        yield url


@pytest.fixture(scope="session")
def blocking_redis(redis_url: str) -> Iterator[blocking.Redis]:
    with blocking.Redis.from_url(redis_url) as redis:
        yield redis


@pytest.fixture
def namespace(blocking_redis: blocking.Redis) -> str:
    """Return an empty namespace: the same for each test, so that scripts are compiled once."""
    if keys := list(blocking_redis.scan_iter(f"{NAMESPACE}*", count=10_000)):
        blocking_redis.unlink(*keys)
    return NAMESPACE


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    async with Redis.from_url(redis_url) as redis:
        yield redis


@pytest.fixture
async def store(redis_url: str, namespace: str) -> AsyncIterator[ScriptStore]:
    """Provide the script store without a client."""
    connection = Connection(redis_url)
    yield ScriptStore(connection, namespace)
    await connection.aclose()


@pytest.fixture
async def client(redis_url: str, namespace: str) -> AsyncIterator[Client]:
    """Provide a client with its own namespace."""
    async with Client(redis_url, namespace=namespace) as client:
        yield client


async def existing_job(client: Client, jid: str) -> JobRecord:
    """Return a job that must exist."""
    job = await client.jobs.get(jid)
    assert job is not None
    return job


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[OwnServer]:
    """Provide a server that the test may kill and restart."""
    server = OwnServer(tmp_path)
    server.start()
    yield server
    server.kill()


@pytest.fixture
def until() -> Until:
    """Wait until a condition is true, and return its value; fail after `patience` seconds."""

    async def wait(condition: Callable[[], Any], patience: float = 60.0) -> Any:
        begun = time.monotonic()
        while True:
            found = condition()
            if inspect.isawaitable(found):
                found = await found
            if found:
                return found
            passed = time.monotonic() - begun
            if passed > patience:
                raise AssertionError(f"waited for {patience} s in vain")
            # polling must not slow down what is waited for
            await asyncio.sleep(0.005 if passed < 1 else 0.05)

    return wait


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail if a test was skipped, where AIOQLESS_NO_SKIPS says that everything is installed."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("AIOQLESS_NO_SKIPS") and reporter and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
