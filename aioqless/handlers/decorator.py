"""`@job`: make a handler of a function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Concatenate, Protocol, TypeVar, overload

from typing_extensions import ParamSpec, Unpack

from aioqless import validation
from aioqless.client import json_data
from aioqless.client.job import Job
from aioqless.handlers.handler import Handler
from aioqless.handlers.options import JobOptions, checked, policy_of, terms_of
from aioqless.handlers.schedule import recurs_of
from aioqless.handlers.signature import Takes, takes

T = TypeVar("T")
P = ParamSpec("P")


class _Untyped:
    """What a `Job[Any]` alone matches, and so a `Job` of which nothing is said: any data, or none.
    A `Job[T]` of a T of yours doesn't."""


class Declare(Protocol):
    """What `@job(...)` with options is."""

    @overload
    def __call__(self, fn: Callable[[Job[_Untyped]], Any], /) -> Handler[...]: ...
    @overload
    def __call__(self, fn: Callable[[Job[T]], Any], /) -> Handler[[T]]: ...
    @overload
    def __call__(self, fn: Callable[Concatenate[Job[Any], P], Any], /) -> Handler[P]: ...
    @overload
    def __call__(self, fn: type[Any], /) -> Handler[...]: ...


@overload
def job(fn: Callable[[Job[_Untyped]], Any], /) -> Handler[...]: ...
@overload
def job(fn: Callable[[Job[T]], Any], /) -> Handler[[T]]: ...
@overload
def job(fn: Callable[Concatenate[Job[Any], P], Any], /) -> Handler[P]: ...
@overload
def job(fn: type[Any], /) -> Handler[...]: ...
@overload
def job(**options: Unpack[JobOptions]) -> Declare: ...
def job(fn: Any = None, /, **options: Unpack[JobOptions]) -> Any:
    """Make a handler of a function, or of a class of the older qless libraries.

    The function takes the job, `async def resize(job: Job)`, with typed data `job: Job[Resize]`, or
    parameters filled from the data by name: `async def resize(job: Job, path: str, width: int =
    100)`. What else can be said is in `JobOptions`. Raises TypeError for a function that takes no
    job, TypeError, ValueError and InvalidData for wrong options."""
    checked(options)

    def declare(fn: Callable[..., Any]) -> Handler[...]:
        taken = Takes() if inspect.isclass(fn) else takes(fn)
        handler: Handler[...] = Handler(
            fn,
            validation.checked(
                "klass", options.get("klass") or f"{fn.__module__}.{fn.__qualname__}"
            ),
            aliases=tuple(validation.checked_list("aliases", options.get("aliases", ()))),
            retries=options.get("retries"),
            retry=policy_of(options),
            result_ttl=options.get("result_ttl"),
            timeout=options.get("timeout"),
            executor=options.get("executor"),
            recurs=recurs_of(options, taken),
            takes=taken,
            terms=terms_of(options, taken),
        )
        if handler.recurs:
            handler.check(json_data.encoded(handler.recurs.data))
        return handler

    return declare if fn is None else declare(fn)
