"""What surrounds every run of a worker: callables around the handler, and hooks that are told how
it ended."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from aioqless import validation
from aioqless.client.job import Job
from aioqless.handlers.resources import Resources
from aioqless.handlers.signature import given
from aioqless.log import log

Call: TypeAlias = Callable[[], Awaitable[Any]]

# As they are logged, with the same fields.
ENDS = (
    "job.completed",
    "job.advanced",
    "job.retried",
    "job.failed",
    "job.released",
    "job.settled",
    "job.lock_lost",
    "job.refused",
)


@dataclass(frozen=True)
class Middleware:
    """Wraps each run."""

    fn: Callable[..., Awaitable[Any]]
    needs: Mapping[str, Any]


def middleware(fn: Callable[..., Awaitable[Any]]) -> Middleware:
    """Make a middleware of `async def timed(job: Job, call: Call) -> Any`, which returns or raises
    what `await call()` does, or something else: it counts as the handler's. Of several, the first
    one collected is the outermost. It runs on the loop, whatever the handler runs in, and the
    handler sees the context variables that it sets. It may take resources, as handlers do."""
    if not inspect.iscoroutinefunction(fn):
        raise TypeError(f"{fn!r} must be an `async def` that takes the job and a callable")
    return Middleware(fn, given(fn))


@dataclass(frozen=True)
class Hook:
    """Is told of ends."""

    fn: Callable[..., Any]
    needs: Mapping[str, Any]
    ends: frozenset[str]


def on_finish(*ends: str) -> Callable[[Callable[..., Any]], Hook]:
    """Make a hook of `def tell(job: Job, end: str, **fields)`, async or not: it is called on the
    loop when Redis knows how a run ended, with the name and the fields of the line that is logged
    then. The slot is free when it has returned; what it raises is logged. It may take resources, as
    handlers do."""
    if not ends or not set(ends) <= set(ENDS):
        raise ValueError(
            f"a hook is told of {', '.join(ENDS)}; say of which, not {', '.join(map(repr, ends)) or 'of none'}"
        )
    return lambda fn: Hook(fn, given(fn), frozenset(ends))


class MiddlewareStack:
    """What surrounds the runs of one worker: the middleware and hooks of some modules, and
    resources that are open while it works."""

    def __init__(
        self,
        arounds: Iterable[Middleware] = (),
        hooks: Iterable[Hook] = (),
        resources: Resources | None = None,
    ) -> None:
        self.resources = resources or Resources()
        self._arounds = tuple(arounds)[::-1]
        self._hooks = {end: [hook for hook in hooks if end in hook.ends] for end in ENDS}
        for each in self._arounds:
            self.resources.check(each.fn, each.needs)
        for hook in hooks:
            self.resources.check(hook.fn, hook.needs)

    def around(self, job: Job, call: Call) -> Awaitable[Any]:
        """Make a call within all that is around it."""
        for each in self._arounds:
            call = partial(each.fn, job, call, **self.resources.filled(each.needs))
        return call()

    async def tell(self, job: Job, end: str, fields: Mapping[str, Any]) -> None:
        """Call the hooks of an end."""
        for hook in self._hooks[end]:
            try:
                told = hook.fn(job, end, **fields, **self.resources.filled(hook.needs))
                if inspect.isawaitable(told):
                    await told
            except Exception as error:
                log.error(
                    "hook.failed",
                    hook=f"{hook.fn.__module__}.{hook.fn.__qualname__}",
                    end=end,
                    error=validation.describe(error),
                )
