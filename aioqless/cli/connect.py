"""Runs a command with a connected client."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import os
from collections.abc import Awaitable, Callable
from typing import TypeVar

from redis.exceptions import RedisError

from aioqless.cli.partitions import PARTITIONS_VARIABLE, count_partitions
from aioqless.client import Client, acting_as, extensions
from aioqless.errors import AioqlessError
from aioqless.redis.cluster import uses_shard_channels
from aioqless.store import Keys

T = TypeVar("T")

PARTITIONS_TIMEOUT = 1.0  # seconds for Redis to say whether a namespace has partitions


def run_with_client(
    url: str | None,
    namespace: str,
    act: Callable[[Client], Awaitable[T]],
    partitions: int | None = None,
) -> T:
    """Call `act` with a connected client, on an event loop of its own; return its result."""

    async def connected() -> T:
        async with make_client(url, namespace, partitions) as client:
            if partitions is None:
                await check_unpartitioned(client)
            with acting_as(_user_name()):
                return await act(client)

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(connected())


def make_client(url: str | None, namespace: str, partitions: int | None = None) -> Client:
    """Return a client of the namespace, or of all its partitions if their number is given."""
    if (partitions := count_partitions(namespace, partitions)) is None:
        return Client(url, namespace=namespace)
    make: Callable[..., Client] = extensions.load("partitions").PartitionedClient
    return make(url, namespace=namespace, partitions=partitions)


async def check_unpartitioned(client: Client) -> None:
    """Refuse a namespace that has partitions in Redis: all its jobs are there.

    What Redis doesn't say within a second is left to the command.

    Raises:
        AioqlessError: It has.
    """
    if uses_shard_channels(client.namespace):  # one of the partitions
        return
    name, count = client.namespace.strip("{}"), None
    with contextlib.suppress(RedisError, TimeoutError):
        async with asyncio.timeout(PARTITIONS_TIMEOUT):
            key = Keys(client.namespace)("partitions")
            count = await client.internals.store.connection.execute("GET", key)
    if count is not None:
        raise AioqlessError(
            f"namespace {name!r} has {int(count)} partitions: give their number by --partitions "
            f"{int(count)}, or set {PARTITIONS_VARIABLE}={int(count)}"
        )


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may have no name for its user
        return str(os.getuid())


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # no uvloop on this platform
        return None
    return uvloop.new_event_loop
