"""Checks the arguments of a task when it is enqueued."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, get_type_hints

import msgspec

from aioqless.client import job_data, json_types
from aioqless.client.json_types import JsonType
from aioqless.contrib.django.task_framework import AnyTask


def check_arguments(task: AnyTask, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Check that the function of a task takes arguments, by name and by type.

    Types that JSON has no values of, or that can't be resolved, are not checked.

    Args:
        task: The task.
        args: Its arguments by position, as JSON has them.
        kwargs: Its arguments by name, as JSON has them.

    Raises:
        TypeError: It does not take them.
        InvalidData: They can't be stored, such as NaN, or more than 1 MiB.
    """
    job_data.encode({"args": args, "kwargs": kwargs})
    signature, types = _read(task.func)
    context = [None] if task.takes_context else []
    try:
        given = signature.bind(*context, *args, **kwargs).arguments
    except TypeError as error:
        raise TypeError(f"{task.module_path}: {error}; it takes {signature}") from None
    for name in types.keys() & given.keys():
        value = given[name]
        if value == signature.parameters[name].default:
            continue
        try:
            types[name].decode(json_types.encode(value))
        except msgspec.MsgspecError as error:
            raise TypeError(
                f"{task.module_path}: argument {name!r} is not of its type: {error} "
                f"(got {job_data.shorten(value)})"
            ) from None


@lru_cache(1024)
def _read(fn: Callable[..., Any]) -> tuple[inspect.Signature, dict[str, JsonType[Any]]]:
    """Return the signature of a function, and the types of parameters that can be checked."""
    signature = inspect.signature(fn)
    try:
        hints = get_type_hints(fn, include_extras=True)
    except Exception:  # names that are imported for type checkers only
        hints = {}
    types = {}
    for name, parameter in signature.parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if name in hints and (found := JsonType(hints[name])).find_problem() is None:
            types[name] = found
    return signature, types
