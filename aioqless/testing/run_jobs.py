"""Run all jobs that are ready."""

from __future__ import annotations

from collections.abc import Sequence

from aioqless.client import Client
from aioqless.client.new_job import DEFAULT_QUEUE
from aioqless.handlers import Handlers, Source
from aioqless.runtime.log import log
from aioqless.testing.unawaited import refuse_unawaited
from aioqless.worker import Settings, Worker

MOST_LOOKED_AT = 100  # jobs of a queue, for one that a handler here claims


async def run_jobs(
    client: Client, *jobs: Source, queues: Sequence[str] | None = None, concurrency: int = 1
) -> None:
    """Run the ready jobs of the namespace, and those that they make ready, until none is left.

    What is scheduled for later stays, until a `Clock` has moved. A job of an unknown klass fails at
    once. A queue that has no job for any of the handlers is left alone, as one of human tasks.

    Args:
        client: A client of the namespace.
        jobs: Modules, handlers, resources, middleware and hooks, as for a worker.
        queues: The queues; default: all of the namespace and of the handlers, "default" first.
        concurrency: Maximum number of jobs at once; with 1 they run in the order of pops.

    Raises:
        TypeError: One of `jobs` is something else.
        ValueError: There is no handler.
        AioqlessError: A handler forgot an `await`.
    """
    if queues is not None:
        await _run(client, jobs, queues, concurrency)
        return
    handlers = Handlers.collect(*jobs)
    served = await _own_queues(client, handlers)
    while True:
        await _run(client, jobs, tuple(served), concurrency)
        own = await _own_queues(client, handlers)
        if served.keys() >= own.keys():
            return
        served |= own


async def _run(
    client: Client, jobs: Sequence[Source], queues: Sequence[str], concurrency: int
) -> None:
    settings = Settings(
        queues=queues,
        concurrency=concurrency,
        burst=True,
        shutdown_timeout=0,
        park_after=0,
        unknown_klass_timeout=0,
    )
    with refuse_unawaited():
        await Worker(client, *jobs, settings=settings).run()


async def _own_queues(client: Client, handlers: Handlers) -> dict[str, None]:
    """Return the queues but those with waiting jobs of which none has a handler."""
    own = dict.fromkeys([DEFAULT_QUEUE, *handlers.queues])
    for queue in await client.queues():
        jids = await client.queue(queue.name).jids("waiting", count=MOST_LOOKED_AT)
        klasses = [job.klass for job in await client.jobs.summaries(*jids)]
        if not klasses or any(handlers.get(klass) for klass in klasses):
            own[queue.name] = None
        else:
            if queue.name != DEFAULT_QUEUE:
                own.pop(queue.name, None)
            why = str(handlers.unknown(klasses[0]))
            log.warning("queue.skipped", queue=queue.name, why=why)
    return own
