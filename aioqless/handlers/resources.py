"""Resources: what a worker opens before its first job, hands to handlers, and closes after its
last."""

from __future__ import annotations

import contextlib
import graphlib
import inspect
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, get_args

from aioqless.errors import AioqlessError
from aioqless.handlers.signature import given, hints


@dataclass(frozen=True)
class Resource:
    """Opens a T for the life of a worker, from resources of other types that its function takes."""

    fn: Callable[..., AsyncIterator[Any]]
    type: Any
    needs: Mapping[str, Any]


def resource(fn: Callable[..., AsyncIterator[Any]]) -> Resource:
    """Make a resource of an async generator that yields once: `async def pool() ->
    AsyncIterator[Pool]`.

    What it yields is handed to each handler of the worker, and to each other resource, that has a
    parameter of this type with the default Inject: `async def charge(job: Job, invoice: int, pool:
    Pool = Inject)`. Types are compared as they are written; for two of one kind, use a `NewType`.
    Raises TypeError for a function that isn't one, or doesn't say what it yields."""
    if not inspect.isasyncgenfunction(fn):
        raise TypeError(
            f"{fn.__qualname__} must be an async generator that yields once, `async def ... -> AsyncIterator[T]`"
        )
    yields = get_args(hints(fn).get("return"))
    if not yields:
        raise TypeError(f"{fn.__qualname__} must say what it yields, as `-> AsyncIterator[Pool]`")
    return Resource(fn, yields[0], given(fn))


class Resources:
    """Owns the resources of one worker, and what they yielded while they are open."""

    def __init__(
        self, resources: Iterable[Resource] = (), there: Mapping[Any, Any] = MappingProxyType({})
    ) -> None:
        """`there` is what needn't be opened. Raises AioqlessError for two of one type, and for
        needs that nobody can fill."""
        self._by_type: dict[Any, Resource] = {}
        self._open = dict(there)
        for each in resources:
            if each.type in there or self._by_type.setdefault(each.type, each) is not each:
                raise AioqlessError(
                    f"two resources are a {_name(each.type)}: give one of them a type of its own, by NewType"
                )
        for each in self._by_type.values():
            self.check(each.fn, each.needs)
        try:
            order = graphlib.TopologicalSorter(
                {type_: list(each.needs.values()) for type_, each in self._by_type.items()}
            ).static_order()
            self._order = [self._by_type[type_] for type_ in order if type_ in self._by_type]
        except graphlib.CycleError as circle:
            raise AioqlessError(
                f"these resources need each other: {', '.join(_name(type_) for type_ in circle.args[1])}"
            ) from None

    def check(self, fn: Callable[..., Any], needs: Mapping[str, Any]) -> None:
        """Whether what a function needs is here. Raises AioqlessError."""
        for name, type_ in needs.items():
            if type_ not in self._by_type and type_ not in self._open:
                raise AioqlessError(
                    f"{fn.__module__}.{fn.__qualname__} takes a {_name(type_)} as {name}, and no @resource of this worker opens one"
                )

    def filled(self, needs: Mapping[str, Any]) -> dict[str, Any]:
        """What is open, by the names of these needs."""
        return {name: self._open[type_] for name, type_ in needs.items()}

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Open all, each after those it needs; they are closed in the other order."""
        async with contextlib.AsyncExitStack() as stack:
            for each in self._order:
                opening = contextlib.asynccontextmanager(each.fn)(**self.filled(each.needs))
                self._open[each.type] = await stack.enter_async_context(opening)
            yield


def _name(type_: Any) -> str:
    return getattr(type_, "__name__", None) or str(type_)
