"""Call a handler: on the loop, in a thread, or in a process."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

from aioqless.handlers import Handlers, MiddlewareStack
from aioqless.worker.executors import Executors, Threads
from aioqless.worker.run import Run

ALONE = MiddlewareStack()


async def perform(
    run: Run,
    handlers: Handlers,
    surroundings: MiddlewareStack = ALONE,
    executors: Executors | None = None,
) -> Any:
    """Find the job's handler and call it within what surrounds it; returns and raises what they do,
    UnknownKlass and InvalidData besides.

    Coroutines run on the loop, plain functions in a thread, and what asks for it in a process of
    the executors'; without executors nothing does. It returns when the code has stopped."""
    return await surroundings.around(
        run.job, partial(_called, run, handlers, surroundings, executors)
    )


async def _called(
    run: Run, handlers: Handlers, surroundings: MiddlewareStack, executors: Executors | None
) -> Any:
    job = run.job
    handler = handlers.find(job.klass)
    if executors is not None and handler.executor == "process":
        return await executors.processes.perform(run, handler)
    call, arguments = handler.bound(job)
    arguments |= surroundings.resources.filled(handler.takes.given)
    if inspect.iscoroutinefunction(call):
        return await call(job, **arguments)
    threads = executors.threads if executors is not None else Threads()
    result = await threads.perform(run, partial(call, job, **arguments))
    return await result if inspect.isawaitable(result) else result
