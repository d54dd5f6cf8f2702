"""Runs a command with a connected client."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import TypeVar

from aioqless.cli.extension_loader import load_partitioned_client
from aioqless.client import Client
from aioqless.errors import AioqlessError

T = TypeVar("T")

PARTITIONS_VARIABLE = "AIOQLESS_PARTITIONS"
# The number of partitions that the command line or the environment names.
chosen_partitions: ContextVar[int | None] = ContextVar("chosen_partitions", default=None)


def run_with_client(url: str | None, namespace: str, act: Callable[[Client], Awaitable[T]]) -> T:
    """Call `act` with a connected client, on an event loop of its own; return its result."""

    async def connected() -> T:
        async with make_client(url, namespace) as client:
            return await act(client)

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(connected())


def make_client(url: str | None, namespace: str) -> Client:
    """Return a client of the namespace, or of all its partitions if there are some."""
    if (partitions := chosen_partitions.get()) is None:
        return Client(url, namespace=namespace)
    return load_partitioned_client()(url, namespace=namespace, partitions=partitions)


def check_one_partition(namespace: str) -> None:
    """Refuse to show a whole namespace where only one partition can be shown.

    Raises:
        AioqlessError: The environment says that it has partitions, and none of them is named.
    """
    if os.environ.get(PARTITIONS_VARIABLE) and "{" not in namespace:
        raise AioqlessError(
            f"this works on one partition at a time: name one by --namespace, such as "
            f"'{namespace}{{...}}'; `aioqless partitions --each` lists them"
        )


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # no uvloop on this platform
        return None
    return uvloop.new_event_loop
