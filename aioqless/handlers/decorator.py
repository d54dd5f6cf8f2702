"""`@job` and `@bulk_job`: make a handler of a function."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Coroutine, Sequence
from types import FrameType
from typing import Any, Concatenate, Protocol, TypeAlias, TypeVar, cast, overload

from typing_extensions import ParamSpec, Unpack

from aioqless import validation
from aioqless.client import job_data
from aioqless.client.job import Job
from aioqless.errors import DuplicateKlass
from aioqless.handlers.handler import Handler
from aioqless.handlers.job_options import (
    BulkJobOptions,
    JobOptions,
    check_options,
    policy_of,
    put_defaults_of,
)
from aioqless.handlers.recurrence import recurrence_of
from aioqless.handlers.signature import HandlerTypes

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")

Returns: TypeAlias = Coroutine[Any, Any, R]  # of a coroutine function
Outcomes: TypeAlias = Sequence[R | Exception] | None  # of a function that takes many jobs


class _Untyped:
    """Marks the overload for `Job`, and so for a plain `Job`: any data, or none.

    A `Job[T]` of the application's T does not match it.
    """


class Declare(Protocol):
    """The type of `@job`, and of `@job(...)` with options."""

    @overload
    def __call__(self, fn: type[object], /) -> Handler[...]: ...
    @overload
    def __call__(
        self, fn: Callable[[Job[_Untyped]], Returns[R]], /
    ) -> Handler[..., R, [Job], Returns[R]]: ...
    @overload
    def __call__(self, fn: Callable[[Job[_Untyped]], R], /) -> Handler[..., R, [Job], R]: ...
    @overload
    def __call__(
        self, fn: Callable[[Job[T]], Returns[R]], /
    ) -> Handler[[T], R, [Job[T]], Returns[R]]: ...
    @overload
    def __call__(self, fn: Callable[[Job[T]], R], /) -> Handler[[T], R, [Job[T]], R]: ...
    @overload
    def __call__(
        self, fn: Callable[Concatenate[Job, P], Returns[R]], /
    ) -> Handler[P, R, Concatenate[Job, P], Returns[R]]: ...
    @overload
    def __call__(
        self, fn: Callable[Concatenate[Job, P], R], /
    ) -> Handler[P, R, Concatenate[Job, P], R]: ...
    @overload
    def __call__(self, **options: Unpack[JobOptions]) -> Declare: ...


def _declare(fn: Callable[..., object]) -> Declare:
    return cast(Declare, fn)


@_declare
def job(fn: Any = None, /, **options: Unpack[JobOptions]) -> Any:
    """Make a handler of a function, or of a class of the older qless libraries.

    The function takes the job, `async def resize(job: Job)`, with typed data `job: Job[Resize]`, or
    parameters filled from the data by name: `async def resize(job: Job, path: str, width: int =
    100)`.

    Args:
        fn: The function.
        **options: See `JobOptions`.

    Raises:
        TypeError: The function takes no job, or an option is unknown or of the wrong type.
        ValueError: An option is out of range.
        InvalidData: The data of a recurring job does not fit.
        DuplicateKlass: The module has another handler of this name.
    """
    if fn is not None and not callable(fn):
        raise TypeError(f"@job takes options by name: write @job(klass={fn!r})")
    declare = _decorator(options, sys._getframe(1))  # noqa: SLF001
    return declare if fn is None else declare(fn)


class DeclareBulk(Protocol):
    """The type of `@bulk_job(...)` with options."""

    @overload
    def __call__(
        self, fn: Callable[[list[Job[_Untyped]]], Returns[Outcomes[R]]], /
    ) -> Handler[..., R, [list[Job]], Returns[Outcomes[R]]]: ...
    @overload
    def __call__(
        self, fn: Callable[[list[Job[_Untyped]]], Outcomes[R]], /
    ) -> Handler[..., R, [list[Job]], Outcomes[R]]: ...
    @overload
    def __call__(
        self, fn: Callable[Concatenate[list[Job[T]], P], Returns[Outcomes[R]]], /
    ) -> Handler[[T], R, Concatenate[list[Job[T]], P], Returns[Outcomes[R]]]: ...
    @overload
    def __call__(
        self, fn: Callable[Concatenate[list[Job[T]], P], Outcomes[R]], /
    ) -> Handler[[T], R, Concatenate[list[Job[T]], P], Outcomes[R]]: ...


def bulk_job(**options: Unpack[BulkJobOptions]) -> DeclareBulk:
    """Make a handler of a function that takes many jobs at once: `jobs: list[Job[Row]]`.

    It returns a list with the outcome of each job, in their order: its result, or a `Retry`,
    `Snooze`, `Fail` or other exception, which is that of this job alone. None completes all. What
    it raises is the outcome of all. Other parameters are injected.

    Args:
        **options: See `BulkJobOptions`.

    Raises:
        TypeError, ValueError, InvalidData, DuplicateKlass: As for `job`.
    """
    return cast(DeclareBulk, _decorator(options, sys._getframe(1), is_bulk=True))  # noqa: SLF001


def _decorator(
    options: JobOptions, caller: FrameType, *, is_bulk: bool = False
) -> Callable[[Callable[..., object]], Handler[...]]:
    """Return what makes handlers of functions.

    Args:
        options: The options.
        caller: Where it is declared: annotations may name local classes of a function.
        is_bulk: The function takes many jobs at once.
    """
    checked = check_options(options, is_bulk=is_bulk)

    def declare(fn: Callable[..., object]) -> Handler[...]:
        if isinstance(fn, Handler):
            raise TypeError(f"{fn.klass} is a handler already: write one @job, with all options")
        if not hasattr(fn, "__qualname__"):
            raise TypeError(f"@job takes a function, whose name is that of its jobs (got {fn!r})")
        _check_name(fn)
        if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
            raise TypeError(
                f"{fn.__qualname__} has a `yield`, so calling it runs nothing: a handler returns "
                "its result, and sends others with `job.emit`"
            )
        result_ttl = checked.get("result_ttl")
        keeps_result, names = result_ttl is not None, _local_names(fn, caller)
        _refuse_method(fn)
        types = HandlerTypes(fn, names, keeps_result=keeps_result, is_bulk=is_bulk)
        handler: Handler[...] = Handler(
            fn,
            validation.check_name(
                "klass", checked.get("klass") or f"{fn.__module__}.{fn.__qualname__}"
            ),
            types,
            aliases=tuple(checked.get("aliases", ())),
            queue=checked.get("queue"),
            put_defaults=put_defaults_of(checked, types.declared),
            retry=policy_of(checked),
            result_ttl=result_ttl,
            output_ttl=checked.get("output_ttl"),
            keep_output=bool(checked.get("keep_output")),
            timeout=checked.get("timeout"),
            executor=checked.get("executor"),
            recurrence=recurrence_of(checked, types.declared),
            on_failure=checked.get("on_failure"),
            is_bulk=is_bulk,
        )
        if handler.recurrence and not types.unresolved:
            handler.check(job_data.encode(handler.recurrence.data))
        return handler

    return declare


def _check_name(fn: Callable[..., object]) -> None:
    """Check that a module that is being imported has no other handler of this name."""
    module = sys.modules.get(fn.__module__)
    is_new = getattr(getattr(module, "__spec__", None), "_initializing", False)  # not reloaded
    other = vars(module).get(fn.__qualname__) if is_new else None
    if isinstance(other, Handler) and other.fn is not fn:
        raise DuplicateKlass(
            f"{fn.__module__} has two handlers of the name {fn.__qualname__}, and workers would "
            "only find the second: rename one of them"
        )


def _refuse_method(fn: Callable[..., object]) -> None:
    """Check that the first parameter of a function is not the instance of a class."""
    code = None if inspect.ismethod(fn) else getattr(fn, "__code__", None)
    if code is not None and code.co_varnames[: code.co_argcount][:1] in (("self",), ("cls",)):
        raise TypeError(
            f"{fn.__qualname__} is a method: its {code.co_varnames[0]!r} would get the job. "
            "Declare a function, or put @staticmethod above @job"
        )


def _local_names(fn: Callable[..., object], caller: FrameType) -> dict[str, object]:
    """Return the variables of the function, if any, in which `@job` is applied to its own."""
    local = "<locals>" in fn.__qualname__ and caller.f_globals is getattr(fn, "__globals__", None)
    return dict(caller.f_locals) if local else {}
