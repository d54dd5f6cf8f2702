"""Fixtures for pytest, there wherever aioqless is installed. They need no plugin for asyncio and go
with any."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from aioqless import Client
    from aioqless.testing import Clock


@pytest.fixture(scope="session")
def aioqless_url() -> Iterator[str]:
    """The url of a Redis that is started when the first test asks, and ends with the last."""
    from aioqless.testing import server

    with server() as url:
        yield url


@pytest.fixture
def aioqless_clock() -> Clock:
    """A clock that stands still until it is moved; the test's client goes by it if the test asks
    for both."""
    from aioqless.testing import Clock

    return Clock()


@pytest.fixture
def aioqless_client(aioqless_url: str, request: pytest.FixtureRequest) -> Client:
    """A client of a namespace that no other test has: `async with aioqless_client as client`."""
    from aioqless import Client

    clock = (
        request.getfixturevalue("aioqless_clock")
        if "aioqless_clock" in request.fixturenames
        else None
    )
    return Client(aioqless_url, namespace=f"test-{secrets.token_hex(6)}", clock=clock)
