"""What modules declare, by kind."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from types import ModuleType
from typing import TypeAlias, TypeVar

from aioqless.handlers.handler import Handler
from aioqless.handlers.resources import Resource
from aioqless.handlers.surround import Around, Hook

Declared: TypeAlias = Handler[...] | Resource | Around | Hook
Kind = TypeVar("Kind", bound=Declared)


def declared(kind: type[Kind], sources: Iterable[ModuleType | Declared | str]) -> list[Kind]:
    """Those of a kind that modules (or their dotted names) hold, and those given one by one; each once, in this order."""
    found: list[Kind] = []
    for source in sources:
        module = importlib.import_module(source) if isinstance(source, str) else source
        values = vars(module).values() if isinstance(module, ModuleType) else [module]
        found += [value for value in values if isinstance(value, kind) and value not in found]
    return found
