"""Middleware around every run of a worker, and hooks that are called when it ends."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import anyio.to_thread

from aioqless import validation
from aioqless.client.job import Job
from aioqless.handlers.resources import Resources
from aioqless.handlers.signature import injected_parameters
from aioqless.runtime.log import log

CallNext: TypeAlias = Callable[[], Awaitable[Any]]

# How a run may end: the events that are logged then, with the same fields.
ENDS = (
    "job.completed",
    "job.advanced",
    "job.retried",
    "job.superseded",
    "job.failed",
    "job.released",
    "job.settled",
    "job.lock_lost",
    "job.refused",
)


@dataclass(frozen=True)
class Middleware:
    """A function that wraps each run."""

    fn: Callable[..., Awaitable[Any]]
    needs: Mapping[str, object]


def middleware(fn: Callable[..., Awaitable[Any]]) -> Middleware:
    """Make a middleware: `async def timed(job: Job, call: CallNext) -> Any`.

    It returns or raises what `await call()` does, or something else, which then counts as the
    handler's. Of several, the first one collected is the outermost. It runs on the loop, wherever
    the handler runs, and the handler sees the context variables that it sets. It may take
    resources, as handlers do.

    Args:
        fn: The function.

    Raises:
        TypeError: It is not an `async def`.
    """
    if not inspect.iscoroutinefunction(fn):
        raise TypeError(f"{fn!r} must be an `async def` that takes the job and a callable")
    return Middleware(fn, injected_parameters(fn))


@dataclass(frozen=True)
class Hook:
    """A function that is called when a run ends."""

    fn: Callable[..., object]
    needs: Mapping[str, object]
    ends: frozenset[str]


def on_finish(*ends: str) -> Callable[[Callable[..., object]], Hook]:
    """Make a hook: `def notify(job: Job, end: str, **fields)`, async or not.

    It is called when the outcome of a run is stored, with the name and the fields of the line that
    is logged then; the job has the state and the failure that it ended with. A coroutine function
    runs on the loop, a plain function in a thread, as handlers do. The job's slot is free when it
    has returned. What it raises is logged. It may take resources, as handlers do.

    Args:
        ends: The events to call it for, such as "job.failed".

    Raises:
        ValueError: There is none, or there is no such event.
    """
    if not ends or not set(ends) <= set(ENDS):
        raise ValueError(
            f"on_finish takes some of {', '.join(ENDS)} "
            f"(got {', '.join(map(repr, ends)) or 'none'})"
        )
    return lambda fn: Hook(fn, injected_parameters(fn), frozenset(ends))


class MiddlewareStack:
    """The middleware and hooks of one worker, and the resources that they and its handlers take.

    Raises:
        AioqlessError: One of them takes a resource that there is not.
    """

    def __init__(
        self,
        middleware: Iterable[Middleware] = (),
        hooks: Iterable[Hook] = (),
        resources: Resources | None = None,
    ) -> None:
        self.resources = resources or Resources()
        self._middleware = tuple(middleware)[::-1]
        self.hooks = {end: [hook for hook in hooks if end in hook.ends] for end in ENDS}
        for each in self._middleware:
            self.resources.check(each.fn, each.needs)
        for hook in hooks:
            self.resources.check(hook.fn, hook.needs)

    def wrap(self, job: Job, call: CallNext) -> Awaitable[Any]:
        """Make a call within all middleware.

        Raises:
            TypeError: One of them has made its call, and has not awaited it.
        """
        for each in self._middleware:
            call = partial(_surround, each, job, call, self.resources.values(each.needs))
        return call()

    async def call_hooks(self, job: Job, end: str, fields: Mapping[str, object]) -> None:
        """Call the hooks for an end; log what they raise."""
        for hook in self.hooks[end]:
            values = {**fields, **self.resources.values(hook.needs)}
            await call_hook(hook.fn, end, values, job, end)


async def _surround(
    middleware: Middleware, job: Job, call: CallNext, values: Mapping[str, object]
) -> Any:
    """Let a middleware surround a call.

    Raises:
        TypeError: It has made the call, and has not awaited it: the handler has not run.
    """
    made: list[Coroutine[object, object, Any]] = []

    def call_next() -> Awaitable[Any]:
        work = _await(call)
        made.append(work)
        return work

    result = await middleware.fn(job, call_next, **values)
    forgotten = [work for work in made if inspect.getcoroutinestate(work) == inspect.CORO_CREATED]
    for work in forgotten:
        work.close()  # else Python warns, too
    if forgotten:
        raise TypeError(
            f"middleware {validation.describe(middleware.fn)} returned without awaiting its call, "
            "so the handler did not run: write `return await call()`"
        )
    return result


async def _await(call: CallNext) -> Any:
    return await call()


async def call_hook(
    fn: Callable[..., object], end: str, values: Mapping[str, object], *args: object
) -> None:
    """Call a hook, on the loop if it is a coroutine function, else in a thread.

    What it raises is logged, SystemExit too.

    Args:
        fn: The hook.
        end: The event that it is called for.
        values: What it takes by name.
        args: What it takes by position.
    """
    try:
        if inspect.iscoroutinefunction(fn):
            await fn(*args, **values)
            return
        result = await anyio.to_thread.run_sync(partial(fn, *args, **values))
        if inspect.isawaitable(result):
            await result
    except BaseException as error:  # SystemExit too, which would end the worker
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        name = getattr(fn, "__qualname__", validation.describe(fn))
        where = f"{getattr(fn, '__module__', None)}.{name}"
        log.error("hook.failed", hook=where, end=end, error=validation.describe(error))
