"""Run all jobs that are ready."""

from __future__ import annotations

from aioqless.client import Client
from aioqless.handlers import Source
from aioqless.worker import Settings, Worker


async def drain(
    client: Client, *jobs: Source, queues: tuple[str, ...] = ("default",), concurrency: int = 1
) -> None:
    """Run the ready jobs of some queues, and those that they make ready, until none is left.

    What is scheduled for later stays, until a `Clock` has moved.

    Args:
        client: A client of the namespace.
        jobs: Modules, handlers, resources, middleware and hooks, as for a worker.
        queues: The queues.
        concurrency: Maximum number of jobs at once; with 1 they run in the order of pops.

    Raises:
        TypeError: One of `jobs` is something else.
        ValueError: There is no handler.
    """
    settings = Settings(queues=queues, concurrency=concurrency, burst=True, grace=0)
    await Worker(client, *jobs, settings=settings).run()
