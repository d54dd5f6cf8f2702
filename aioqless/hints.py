"""Help for wrong names: what other libraries call theirs, and what to write instead.

Type checkers find these mistakes by themselves, so nothing here is declared to them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TypeVar

C = TypeVar("C", bound=type[object])

# What other libraries export.
_EXPORTS = {
    "Cron": "`@job(cron=...)`",
    "Depends": "`aioqless.Inject`",
    "RateLimit": "`@job(rate_limit=...)`",
}
# What other queues call their put.
_PUTS = frozenset(
    (
        "add",
        "add_job",
        "add_task",
        "apply",
        "apply_async",
        "defer",
        "defer_async",
        "delay",
        "enqueue",
        "enqueue_at",
        "enqueue_in",
        "enqueue_job",
        "kicker",
        "kiq",
        "perform_async",
        "perform_in",
        "publish",
        "push",
        "schedule",
        "send",
        "send_task",
        "send_with_options",
        "submit",
    )
)


def no_export(name: str) -> AttributeError:
    """Return the error for a name that `aioqless` does not export."""
    errors = import_module("aioqless.errors")
    text = f"module 'aioqless' has no attribute {name!r}"
    if name[0].isupper() and hasattr(errors, name):
        text += f": write `from aioqless.errors import {name}`"
    elif name in _EXPORTS:
        text += f": write {_EXPORTS[name]}"
    return AttributeError(text)


def suggest_put(way: str) -> Callable[[C], C]:
    """Return a decorator of classes: names by which other queues put a job raise with a hint.

    Args:
        way: How a job is put with an object of the class.
    """

    def __getattr__(self: object, name: str) -> object:  # noqa: N807
        text = f"{type(self).__name__!r} object has no attribute {name!r}"
        if name in _PUTS:
            text += f": put a job by {way}"
        raise AttributeError(text, name=name, obj=self)

    def decorate(cls: C) -> C:
        type.__setattr__(cls, "__getattr__", __getattr__)
        return cls

    return decorate


def suggest_options(hints: Mapping[str, str]) -> Callable[[C], C]:
    """Return a decorator of classes: options that their constructor lacks raise with a hint.

    Args:
        hints: What to write instead, by the name of the option.
    """

    def decorate(cls: C) -> C:
        construct = vars(cls)["__init__"]

        @functools.wraps(construct)
        def __init__(self: object, *args: object, **options: object) -> None:  # noqa: N807
            for name in options:
                if name in hints:
                    raise TypeError(f"{cls.__name__} has no option {name!r}: write {hints[name]}")
            construct(self, *args, **options)

        type.__setattr__(cls, "__init__", __init__)
        return cls

    return decorate
