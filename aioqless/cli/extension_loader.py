"""Imports extensions by name, when a command needs one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias, cast

if TYPE_CHECKING:
    from aioqless.client import Client
    from aioqless.worker import AnyWorker

PARTITIONS = "aioqless.contrib.partitions"
METRICS = "aioqless.contrib.telemetry.prometheus"
METRICS_SERVER = "aioqless.contrib.telemetry.metrics_server"
PRIVATE_REDIS = "aioqless.contrib.private_redis"
SUPERVISOR = "aioqless.contrib.supervisor.run"

# The command line of a worker process, by its number, the descriptor of the socket to its
# supervisor, and whether it starts paused.
ProcessCommand: TypeAlias = Callable[[int, int, bool], list[str]]


def load_partitioned_client() -> Callable[..., Client]:
    """Return the class of clients of all partitions."""
    return cast("Callable[..., Client]", import_module(PARTITIONS).PartitionedClient)


def load_partitioned_worker() -> Callable[..., AnyWorker]:
    """Return the class of workers of all partitions."""
    return cast("Callable[..., AnyWorker]", import_module(PARTITIONS).PartitionedWorker)


def load_supervisor() -> Callable[..., int]:
    """Return the function that runs a supervisor until all its processes have ended."""
    return cast(Callable[..., int], import_module(SUPERVISOR).supervise)


def serve_metrics(address: str) -> AbstractAsyncContextManager[None]:
    """Serve the metrics of this process over HTTP while in the block."""
    server = import_module(METRICS_SERVER)
    return cast(AbstractAsyncContextManager[None], server.serve_metrics(address))


def is_private_redis_running() -> bool:
    """Return whether the private Redis runs; it isn't started."""
    return import_module(PRIVATE_REDIS).running() is not None
