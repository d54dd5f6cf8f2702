"""Call a handler, on the loop or in a thread."""

from __future__ import annotations

import inspect
from typing import Any

import anyio
import anyio.to_thread

from aioqless.handlers import Handlers
from aioqless.jobs import Job


async def perform(job: Job, handlers: Handlers, threads: anyio.CapacityLimiter | None = None) -> Any:
    """Find the job's handler and call it; returns and raises what it does, UnknownKlass and InvalidData besides.

    Coroutines run on the loop, plain functions in a thread. A thread can't be cancelled: this returns when its code has stopped.
    """
    call, arguments = handlers.find(job.klass).bound(job)
    if inspect.iscoroutinefunction(call):
        return await call(job, **arguments)
    return await anyio.to_thread.run_sync(lambda: call(job, **arguments), limiter=threads)
