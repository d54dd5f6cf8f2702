"""Imports extensions by name, when a command needs one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast

if TYPE_CHECKING:
    from aioqless.client import Client
    from aioqless.worker import Worker

PARTITIONS = "aioqless.contrib.partitions"
METRICS = "aioqless.contrib.telemetry.prometheus"
METRICS_SERVER = "aioqless.contrib.telemetry.metrics_server"
PRIVATE_REDIS = "aioqless.contrib.private_redis"
SUPERVISOR = "aioqless.contrib.supervisor.run"

# The command line of a worker process, by its number, the descriptor of the socket to its
# supervisor, and whether it starts paused.
ProcessCommand: TypeAlias = Callable[[int, int, bool], list[str]]


class MakePartitionedClient(Protocol):
    """Makes a client of all partitions of a namespace."""

    def __call__(self, url: str | None, *, namespace: str, partitions: int) -> Client:
        """Make it."""


def load_partitioned_client() -> MakePartitionedClient:
    """Return the class of clients of all partitions."""
    return cast(MakePartitionedClient, import_module(PARTITIONS).PartitionedClient)


def load_partitioned_worker() -> type[Worker]:
    """Return the class of workers of all partitions."""
    return cast("type[Worker]", import_module(PARTITIONS).PartitionedWorker)


class Supervise(Protocol):
    """Runs a supervisor of worker processes; returns the exit code."""

    def __call__(
        self,
        command: ProcessCommand,
        *,
        processes: int,
        shutdown_timeout: float,
        burst: bool,
        reload: bool,
        health: str | None,
        metrics: str | None,
    ) -> int:
        """Start the processes, and return when all have ended."""


def load_supervisor() -> Supervise:
    """Import the supervisor."""
    return cast(Supervise, import_module(SUPERVISOR).supervise)


def serve_metrics(address: str) -> AbstractAsyncContextManager[None]:
    """Serve the metrics of this process over HTTP while in the block."""
    server = import_module(METRICS_SERVER)
    return cast(AbstractAsyncContextManager[None], server.serve_metrics(address))


def is_private_redis_running() -> bool:
    """Return whether the private Redis runs; it isn't started."""
    return import_module(PRIVATE_REDIS).running() is not None
