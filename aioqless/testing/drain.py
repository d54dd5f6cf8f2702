"""Work off what is ready."""

from __future__ import annotations

from aioqless.client import Client
from aioqless.handlers import Source
from aioqless.worker import Settings, Worker


async def drain(
    client: Client, *jobs: Source, queues: tuple[str, ...] = ("default",), at_once: int = 1
) -> None:
    """Perform all jobs of these queues that are ready, and those that they make ready, until none
    is left: one after the other, in the order in which a pop hands them out, unless more are to run
    `at_once`.

    The handlers (and resources, middleware, hooks) are those of the modules, as for a worker. What
    is scheduled for later stays, until a `Clock` has moved."""
    settings = Settings(queues=queues, concurrency=at_once, burst=True, grace=0)
    await Worker(client, *jobs, settings=settings).run()
