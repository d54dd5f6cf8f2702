"""Collect what modules declare, by kind."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any, TypeAlias, TypeVar

from aioqless.handlers.handler import Handler
from aioqless.handlers.middleware_stack import Hook, Middleware
from aioqless.handlers.resources import Resource

# `Handler[...]` without its other arguments raises TypeError in Python 3.13.0 to 3.13.7
# (https://github.com/python/cpython/issues/138859).
Declared: TypeAlias = Handler[..., Any, ..., Any] | Resource | Middleware | Hook
Source: TypeAlias = ModuleType | str | Declared | Sequence["Source"]
Kind = TypeVar("Kind", bound=Declared)


def declared(kind: type[Kind], sources: Iterable[Source]) -> list[Kind]:
    """Collect the declarations of a kind, each once, in the order of the sources.

    Args:
        kind: Handler, Resource, Middleware or Hook.
        sources: Modules or their dotted names, whose attributes count; what `@job`, `@resource`,
            `@middleware`, `@on_finish` and `@on_lag` make; and lists of these.

    Raises:
        TypeError: A source is something else.
    """
    found: list[Kind] = []
    for source in sources:
        found += [
            value for value in _values(source) if isinstance(value, kind) and value not in found
        ]
    return found


def _values(source: object) -> Iterator[object]:
    match source:
        case str():
            yield from vars(importlib.import_module(source)).values()
        case ModuleType():
            yield from vars(source).values()
        case list() | tuple():
            for each in source:
                yield from _values(each)
        case Handler() | Resource() | Middleware() | Hook():
            yield source
        case _ if inspect.isroutine(source) or inspect.isclass(source):
            raise TypeError(
                f"{source.__qualname__} is not a handler: decorate it with @aioqless.job"
            )
        case _:
            raise TypeError(
                "a worker takes modules, their names, handlers, and lists of these "
                f"(got {source!r})"
            )
