"""Run all jobs that are ready."""

from __future__ import annotations

from collections.abc import Sequence

from aioqless.client import Client
from aioqless.handlers import Handlers, Source
from aioqless.runtime.log import log
from aioqless.worker import Settings, Worker

MOST_LOOKED_AT = 100  # jobs of a queue, for one that a handler here claims


async def drain(
    client: Client, *jobs: Source, queues: Sequence[str] | None = None, concurrency: int = 1
) -> None:
    """Run the ready jobs of the namespace, and those that they make ready, until none is left.

    What is scheduled for later stays, until a `Clock` has moved. A job of an unknown klass fails at
    once. A queue that has no job for any of the handlers is left alone, as one of human tasks.

    Args:
        client: A client of the namespace.
        jobs: Modules, handlers, resources, middleware and hooks, as for a worker.
        queues: The queues; default: all of the namespace, "default" first.
        concurrency: Maximum number of jobs at once; with 1 they run in the order of pops.

    Raises:
        TypeError: One of `jobs` is something else.
        ValueError: There is no handler.
    """
    if queues is not None:
        await _run(client, jobs, queues, concurrency)
        return
    handlers = Handlers.collect(*jobs)
    served = dict.fromkeys(["default", *await _ready_queues(client, handlers)])
    while True:
        await _run(client, jobs, tuple(served), concurrency)
        ready = await _ready_queues(client, handlers)
        if not ready - served.keys():  # others are paused, or at a limit
            return
        served |= dict.fromkeys(sorted(ready))


async def _run(
    client: Client, jobs: Sequence[Source], queues: Sequence[str], concurrency: int
) -> None:
    settings = Settings(
        queues=queues, concurrency=concurrency, burst=True, grace=0, unknown_klass_timeout=0
    )
    await Worker(client, *jobs, settings=settings).run()


async def _ready_queues(client: Client, handlers: Handlers) -> set[str]:
    """Return the queues that have a ready job with a handler."""
    ready: set[str] = set()
    queues = await client.queues()
    for queue in queues:
        found = await client.queue(queue.name).peek(MOST_LOOKED_AT)
        if any(handlers.get(job.klass) for job in found):
            ready.add(queue.name)
        elif found:
            why = str(handlers.unknown(found[0].klass))
            log.warning("queue.skipped", queue=queue.name, why=why)
    return ready
