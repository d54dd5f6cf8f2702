"""Dependency injection: resources that a worker opens before its first job, and closes."""

from __future__ import annotations

import contextlib
import graphlib
import inspect
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, get_args

from aioqless.errors import AioqlessError
from aioqless.handlers.signature import injected_parameters, type_hints


@dataclass(frozen=True)
class Resource:
    """A function that opens a value of some type for the life of a worker."""

    fn: Callable[..., object]
    type: object
    needs: Mapping[str, object]


def resource(fn: Callable[..., object]) -> Resource:
    """Make a resource: `async def pool() -> AsyncIterator[Pool]`, which yields once.

    A value that needn't be closed is returned instead: `def bank() -> Bank`, or `async def`.
    It is injected into each handler of the worker, and into each other resource, that has a
    parameter of this type with the default `Inject`: `async def charge(job: Job, invoice: int,
    pool: Pool = Inject)`. Types are compared as they are written; for two of one type, use a
    `NewType`.

    Args:
        fn: The async generator, coroutine or function.

    Raises:
        TypeError: Its return type is missing, or it is another generator.
    """
    if inspect.isgeneratorfunction(fn):
        raise TypeError(
            f"{fn.__qualname__} must be an async generator that yields once, "
            "`async def ... -> AsyncIterator[T]`, or return what it opens"
        )
    returned = type_hints(fn).get("return")
    if inspect.isasyncgenfunction(fn):
        returned = next(iter(get_args(returned)), None)
    if returned is None or returned is type(None):
        raise TypeError(
            f"{fn.__qualname__} must say what it opens, as `-> AsyncIterator[Pool]` if it yields, "
            "or `-> Bank`"
        )
    return Resource(fn, returned, injected_parameters(fn))


def lifespan(fn: Callable[..., AsyncIterator[None]]) -> Resource:
    """Make a lifespan: an async generator that yields once, and runs while the worker does.

    What is before the `yield` runs before the worker's first job, the rest after its last. Nothing
    is injected into handlers; it may take resources itself.

    Args:
        fn: The async generator.

    Raises:
        TypeError: It is not an async generator.
    """
    if not inspect.isasyncgenfunction(fn):
        raise TypeError(f"{fn.__qualname__} must be an async generator that yields once")
    return Resource(fn, fn, injected_parameters(fn))  # its type is its own: nothing takes it


class Resources:
    """The resources of one worker, and what they yielded while they are open.

    Args:
        resources: The resources.
        available: Values by type that need not be opened.

    Raises:
        AioqlessError: Two are of one type, one takes a type that there is not, or they form a
            cycle.
    """

    def __init__(
        self,
        resources: Iterable[Resource] = (),
        available: Mapping[object, object] = MappingProxyType({}),
    ) -> None:
        self._by_type: dict[object, Resource] = {}
        self._open = dict(available)
        for each in resources:
            if each.type in available or self._by_type.setdefault(each.type, each) is not each:
                raise AioqlessError(
                    f"two resources have the type {_name(each.type)}: give one of them its own, "
                    "by NewType"
                )
        for each in self._by_type.values():
            self.check(each.fn, each.needs)
        try:
            order = graphlib.TopologicalSorter(
                {type_: list(each.needs.values()) for type_, each in self._by_type.items()}
            ).static_order()
            self._order = [self._by_type[type_] for type_ in order if type_ in self._by_type]
        except graphlib.CycleError as circle:
            names = ", ".join(_name(type_) for type_ in circle.args[1])
            raise AioqlessError(
                f"these resources depend on each other in a cycle: {names}"
            ) from None

    def check(
        self,
        fn: Callable[..., object],
        needs: Mapping[str, object],
        reason: str = "no @resource of this worker opens one",
    ) -> None:
        """Check that each type that a function takes is there.

        Args:
            fn: The function.
            needs: The types, by parameter.
            reason: Why one is not, for the message of the error.

        Raises:
            AioqlessError: One is not.
        """
        for name, type_ in needs.items():
            if type_ not in self._by_type and type_ not in self._open:
                raise AioqlessError(
                    f"{fn.__module__}.{fn.__qualname__} takes a {_name(type_)} as {name}, and "
                    f"{reason}"
                )

    def values(self, needs: Mapping[str, object]) -> dict[str, Any]:
        """Return the open values for parameters of these types, by parameter."""
        return {name: self._open[type_] for name, type_ in needs.items()}

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Open all, each after those it takes; they are closed in the reverse order."""
        async with contextlib.AsyncExitStack() as stack:
            for each in self._order:
                values = self.values(each.needs)
                if inspect.isasyncgenfunction(each.fn):
                    opening = contextlib.asynccontextmanager(each.fn)(**values)
                    opened = await stack.enter_async_context(opening)
                elif inspect.iscoroutinefunction(each.fn):
                    opened = await each.fn(**values)
                else:
                    opened = each.fn(**values)
                self._open[each.type] = opened
            yield


def _name(type_: object) -> str:
    return getattr(type_, "__name__", None) or str(type_)
