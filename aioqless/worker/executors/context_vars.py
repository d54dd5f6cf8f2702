"""Which context variables travel to a process.

structlog's bound values do, and every ContextVar that is a module's global, each if its value can
be pickled. A variable has no name by which another process could find it, but its module has: that
is looked for once."""

from __future__ import annotations

import contextvars
import importlib
import pickle
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, TypeAlias

import structlog

Variables: TypeAlias = list[
    tuple[str, str, bytes]
]  # of each: its module, its name there, its value; structlog's have no module

STRUCTLOG = ""
# What says on which loop, or in which thread, something runs is not true in another process.
THEIR_OWN = ("aioqless", "anyio", "asyncio", "sniffio", "structlog")

_places: dict[ContextVar[Any], tuple[str, str] | None] = {}


def packed() -> Variables:
    """The variables of the current context."""
    found = [
        (STRUCTLOG, name, value) for name, value in structlog.contextvars.get_contextvars().items()
    ]
    for variable, value in contextvars.copy_context().items():
        if variable not in _places:
            _places[variable] = next(_found(variable), None)
        if place := _places[variable]:
            found.append((*place, value))
    return [
        (module, name, text)
        for module, name, value in found
        if (text := _pickled(value)) is not None
    ]


def unpack(variables: Variables) -> None:
    """Set them in the current context."""
    for module, name, text in variables:
        value = pickle.loads(text)
        if module == STRUCTLOG:
            structlog.contextvars.bind_contextvars(**{name: value})
        else:
            getattr(importlib.import_module(module), name).set(value)


def _found(variable: ContextVar[Any]) -> Iterator[tuple[str, str]]:
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] not in THEIR_OWN and name != "__main__":
            yield from (
                (name, each)
                for each, value in list(getattr(module, "__dict__", {}).items())
                if value is variable
            )


def _pickled(value: Any) -> bytes | None:
    try:
        return pickle.dumps(value)
    except Exception:  # whatever an object's own methods raise
        return None
