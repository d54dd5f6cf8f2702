"""Middleware around every run of a worker, and hooks that are called when it ends."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

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

    It is called on the loop when the outcome of a run is stored, with the name and the fields of
    the line that is logged then. The job's slot is free when it has returned. What it raises is
    logged. It may take resources, as handlers do.

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
        """Make a call within all middleware."""
        for each in self._middleware:
            call = partial(each.fn, job, call, **self.resources.values(each.needs))
        return call()

    async def call_hooks(self, job: Job, end: str, fields: Mapping[str, object]) -> None:
        """Call the hooks for an end; log what they raise."""
        for hook in self.hooks[end]:
            values = {**fields, **self.resources.values(hook.needs)}
            await call_hook(hook.fn, end, values, job, end)


async def call_hook(
    fn: Callable[..., object], end: str, values: Mapping[str, object], *args: object
) -> None:
    """Call a hook, which may be async; log what it raises.

    Args:
        fn: The hook.
        end: The event that it is called for.
        values: What it takes by name.
        args: What it takes by position.
    """
    try:
        result = fn(*args, **values)
        if inspect.isawaitable(result):
            await result
    except Exception as error:
        name = f"{fn.__module__}.{fn.__qualname__}"
        log.error("hook.failed", hook=name, end=end, error=validation.describe(error))
