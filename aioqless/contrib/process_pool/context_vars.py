"""Pass context variables to a process.

structlog's bound values are passed, and every ContextVar that is a module's global, each if its
value can be pickled. A variable has no name by which another process could find it, but its module
has: it is searched for once.
"""

from __future__ import annotations

import contextvars
import importlib
import pickle
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TypeAlias

import structlog

# Of each: its module, its name there, its pickled value; structlog's have no module.
Variables: TypeAlias = list[tuple[str, str, bytes]]

STRUCTLOG = ""
# Packages whose variables say on which loop or thread something runs, which another has not.
EXCLUDED = ("aioqless", "anyio", "asyncio", "sniffio", "structlog")

_locations: dict[ContextVar[object], tuple[str, str] | None] = {}


def pack() -> Variables:
    """Pack the variables of the current context."""
    found = [
        (STRUCTLOG, name, value) for name, value in structlog.contextvars.get_contextvars().items()
    ]
    for variable, value in contextvars.copy_context().items():
        if variable not in _locations:
            _locations[variable] = next(_locate(variable), None)
        if location := _locations[variable]:
            found.append((*location, value))
    return [
        (module, name, text)
        for module, name, value in found
        if (text := _pickle(value)) is not None
    ]


def unpack(variables: Variables) -> None:
    """Set variables in the current context."""
    for module, name, text in variables:
        value = pickle.loads(text)
        if module == STRUCTLOG:
            structlog.contextvars.bind_contextvars(**{name: value})
        else:
            getattr(importlib.import_module(module), name).set(value)


def _locate(variable: ContextVar[object]) -> Iterator[tuple[str, str]]:
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] not in EXCLUDED and name != "__main__":
            yield from (
                (name, each)
                for each, value in list(getattr(module, "__dict__", {}).items())
                if value is variable
            )


def _pickle(value: object) -> bytes | None:
    try:
        return pickle.dumps(value)
    except Exception:  # whatever an object's own methods raise
        return None
