"""Fixtures for pytest, available wherever aioqless is installed.

They need no plugin for asyncio, and work with any.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from aioqless import Client
    from aioqless.testing import Clock, MemoryClient


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Fail a test in which the put of a handler was never awaited: its job was lost."""
    if module := sys.modules.get("aioqless.handlers.put_call"):
        module.unawaited_puts.clear()
    result = yield
    module = sys.modules.get("aioqless.handlers.put_call")
    if module is not None and module.unawaited_puts:
        where = "; ".join(module.unawaited_puts)
        pytest.fail(f"{where}; write `await` before the call, or use SyncClient", pytrace=False)
    return result


@pytest.fixture(scope="session")
def aioqless_url() -> Iterator[str]:
    """The URL of a Redis that is started for the first test that needs it."""
    from aioqless.testing import server

    with server() as url:
        yield url


@pytest.fixture
def aioqless_redis(aioqless_url: str) -> Iterator[str]:
    """The URL of the tests' Redis, which is empty, and which every client uses in the test."""
    from aioqless.testing import isolate

    with isolate(aioqless_url):
        yield aioqless_url


@pytest.fixture
def aioqless_clock() -> Clock:
    """A clock that stands still until it is moved; `aioqless_client` uses it, too."""
    from aioqless.testing import Clock

    return Clock()


@pytest.fixture
def aioqless_memory_client() -> MemoryClient:
    """A client without Redis; `aioqless.testing.put_jobs` returns what was put with it."""
    from aioqless.testing import MemoryClient

    return MemoryClient()


@pytest.fixture
def aioqless_client(aioqless_redis: str, request: pytest.FixtureRequest) -> Client:
    """A client of a namespace of its own: `async with aioqless_client as client`.

    All other clients use the tests' Redis, too, as with `aioqless_redis`.
    """
    from aioqless import Client

    clock = (
        request.getfixturevalue("aioqless_clock")
        if "aioqless_clock" in request.fixturenames
        else None
    )
    return Client(aioqless_redis, namespace=f"test-{secrets.token_hex(6)}", clock=clock)
