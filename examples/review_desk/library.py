"""The items to review: functions of the standard library and their docstrings; no queues."""

from __future__ import annotations

import calendar
import colorsys
import difflib
import fnmatch
import inspect
import random
import shutil
import statistics
import textwrap
import timeit
import tokenize
from dataclasses import dataclass
from types import FunctionType, ModuleType

MODULES: dict[str, ModuleType] = {
    module.__name__: module
    for module in (calendar, colorsys, difflib, fnmatch, shutil, statistics, textwrap, timeit,
        tokenize)
}  # fmt: skip
LABELS = {
    "clear": "Clear",
    "terse": "Too terse",
    "example": "Wants an example",
    "confusing": "Confusing",
}


@dataclass(frozen=True)
class Entry:
    """The signature and docstring of a function."""

    signature: str
    text: str


def names() -> list[str]:
    """Return the names of all functions with a docstring, in a fixed random order."""
    found = [
        f"{module.__name__}.{name}"
        for module in MODULES.values()
        for name in getattr(module, "__all__", dir(module))
        if isinstance(function := getattr(module, name), FunctionType)
        and function.__module__ == module.__name__
        and inspect.getdoc(function)
    ]
    random.Random(11).shuffle(found)
    return found


def entry(name: str) -> Entry:
    """Return a function by one of the `names`.

    Raises:
        LookupError: For any other name; nothing is imported.
    """
    module, _, function = name.partition(".")
    found = getattr(MODULES[module], function, None)
    if not isinstance(found, FunctionType):
        raise LookupError(f"{module} has no function {function!r}")
    return Entry(f"{function}{inspect.signature(found)}", inspect.getdoc(found) or "")


def guess(entry: Entry) -> str:
    """Guess a label by simple rules."""
    words = len(entry.text.split())
    if ">>>" in entry.text:
        return "clear"
    if words < 12:
        return "terse"
    return "confusing" if words > 150 else "example"
