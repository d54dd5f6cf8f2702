"""The Redis servers that a process may use: any, but within an isolated test that of the tests.

`aioqless.testing.isolation` restricts its process. Child processes inherit the restriction from
the environment.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aioqless.errors import AioqlessError
from aioqless.redis.address import Address

TESTS_URL = "AIOQLESS_TESTS_URL"
TESTS_ALLOW = "AIOQLESS_TESTS_ALLOW"


class ServerRestriction:
    """Lets clients use the tests' Redis, and the servers that AIOQLESS_TESTS_ALLOW names.

    Attributes:
        url: URL of the tests' Redis; None outside of isolated tests.
    """

    def __init__(self) -> None:
        self.url: str | None = None
        self._allowed: set[Any] = set()
        if url := os.environ.get(TESTS_URL):
            self._restrict(url)

    @contextmanager
    def within_test(self, url: str) -> Iterator[None]:
        """Restrict this process and its child processes while the block is entered.

        Raises:
            ValueError: AIOQLESS_TESTS_ALLOW has something that is no URL of Redis.
        """
        before = self.url
        self._restrict(url)
        os.environ[TESTS_URL] = url
        try:
            yield
        finally:
            self.url = before
            if before is None:
                del os.environ[TESTS_URL]
            else:
                os.environ[TESTS_URL] = before

    def redirect(self, address: Address | None) -> str | None:
        """Return the URL to connect to in place of an address; None if it may be used."""
        if address is not None and _server_of(address) in self._allowed:
            return None
        return self.url

    def check(self, address: Address) -> None:
        """Refuse to use a server.

        Raises:
            AioqlessError: A test is isolated from it.
        """
        if self.url is None or _server_of(address) in self._allowed:
            return
        if _server_of(address) != _server_of(Address.parse(self.url)):
            raise AioqlessError(
                f"this client is connected to Redis at {address}, which isn't that of the tests: "
                "open it within the test, after the fixture, so that it connects to the tests' "
                f"Redis, or let tests use this one: {TESTS_ALLOW}={address}"
            )

    def _restrict(self, url: str) -> None:
        allowed = set()
        for each in os.environ.get(TESTS_ALLOW, "").split():
            try:
                allowed.add(_server_of(Address.parse(each)))
            except ValueError as error:
                raise ValueError(f"{TESTS_ALLOW}: {error}") from None
        self.url, self._allowed = url, allowed


restriction = ServerRestriction()


def _server_of(address: Address) -> tuple[Any, ...]:
    """Return what two URLs of the same database have in common, without user and password."""
    return address.kind, address.endpoints, address.service, address.options.get("db", 0)
