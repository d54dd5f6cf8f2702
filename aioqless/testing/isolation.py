"""Tests whose clients all use the tests' Redis."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from aioqless.client.sync_client import close_all
from aioqless.redis.server_restriction import restriction
from aioqless.testing.server import empty


@contextmanager
def isolate(url: str) -> Iterator[None]:
    """Let every client use the tests' Redis, which is emptied first, while the block is entered.

    A client that connects within the block connects to it, whatever URL the client was given or
    finds in the environment: async or synchronous, made before or within the block, here or in a
    process that is started here. A client that is connected to another Redis already is refused
    when it sends a command; synchronous clients connect again. AIOQLESS_TESTS_ALLOW, URLs separated
    by spaces, names what clients may use nevertheless.

    Args:
        url: What `server` yielded.

    Raises:
        ValueError: It is another URL, or AIOQLESS_TESTS_ALLOW is wrong.
    """
    empty(url)
    close_all()
    with restriction.within_test(url):
        try:
            yield
        finally:
            close_all()
