"""Handlers: functions that perform jobs, and the table from klass to handler.

`@job` describes a function and stores nothing; `Handlers.collect` reads modules when a worker starts. A klass is looked up in that
table alone: nothing is ever imported because Redis named it.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any, get_args, get_origin, get_type_hints, overload

import msgspec

from aioqless import names
from aioqless.errors import DuplicateKlass, InvalidData, UnknownKlass
from aioqless.jobs import Job
from aioqless.retrying import Backoff, RetryPolicy, exponential

METHODS = ("process", "perform")


@dataclass(frozen=True)
class Handler:
    """A function, or a class of the older qless libraries, that performs the jobs of a klass. Calling it calls the function."""

    fn: Callable[..., Any]
    klass: str
    aliases: tuple[str, ...] = ()
    retries: int | None = None
    retry: RetryPolicy | None = None  # None: the worker's
    timeout: float | None = None  # seconds that a run may take
    takes: Takes = field(default_factory=lambda: Takes())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fn(*args, **kwargs)

    def check(self, text: bytes) -> None:
        """Whether the function takes these data. Raises InvalidData."""
        self.takes.arguments(self.klass, text)

    def bound(self, job: Job) -> tuple[Callable[..., Any], dict[str, Any]]:
        """What to call with the job, and the arguments filled from its data. Raises InvalidData, UnknownKlass for a class without
        a method for the queue."""
        arguments = self.takes.arguments(self.klass, job.raw_data.encode("utf-8", "surrogateescape"), job)
        if not inspect.isclass(self.fn):
            return self.fn, arguments
        for name in (job.queue, *METHODS):
            if not name.startswith("_") and any(name in vars(each) for each in self.fn.__mro__[:-1]) and callable(getattr(self.fn, name)):
                return getattr(self.fn, name), arguments
        raise UnknownKlass(f"class {self.klass} has no method {job.queue!r}, nor {' or '.join(METHODS)}")


@dataclass(frozen=True)
class Takes:
    """What a function takes of a job's data: all of them as the type T of `Job[T]`, or parameters by name behind the job."""

    whole: Any = None
    parameters: type[msgspec.Struct] | None = None

    def arguments(self, klass: str, text: bytes, job: Job | None = None) -> dict[str, Any]:
        """The parameters' values; the job, if given, gets its typed data. Keys that no parameter takes are left alone."""
        type_ = self.whole or self.parameters
        if type_ is None:
            return {}
        try:
            value = msgspec.json.decode(text, type=type_)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise InvalidData(f"{klass} can't take these data: {error}") from None
        if self.parameters is None:
            if job is not None:
                job.read_as(value)
            return {}
        return {name: getattr(value, name) for name in value.__struct_fields__}


@overload
def job(fn: Callable[..., Any], /) -> Handler: ...
@overload
def job(
    *,
    klass: str | None = None,
    aliases: Iterable[str] = (),
    retries: int | None = None,
    retry_on: tuple[type[Exception], ...] | None = None,
    backoff: Backoff | None = None,
    timeout: float | None = None,
) -> Callable[[Callable[..., Any]], Handler]: ...
def job(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    klass: str | None = None,
    aliases: Iterable[str] = (),
    retries: int | None = None,
    retry_on: tuple[type[Exception], ...] | None = None,
    backoff: Backoff | None = None,
    timeout: float | None = None,
) -> Handler | Callable[[Callable[..., Any]], Handler]:
    """Make a handler of a function, or of a class of the older qless libraries.

    `klass` is the name its jobs have in Redis, by default `module.function`. To rename it, give the former name as an alias until no job
    of that name is left. `retries` is what its jobs are put with by default.

    `retry_on` names the exceptions that are transient: the job runs again after `backoff`, by default a growing time; without it, the
    worker's policy holds. A run that takes longer than `timeout` seconds is cancelled and fails in `<queue>-timeout`.

    The function takes the job, `async def resize(job: Job)`, with typed data `job: Job[Resize]`, or parameters filled from the data by
    name: `async def resize(job: Job, path: str, width: int = 100)`. Raises TypeError for a function that takes no job.
    """

    def describe(fn: Callable[..., Any]) -> Handler:
        name = names.checked("klass", klass or f"{fn.__module__}.{fn.__qualname__}")
        if retries is not None:
            names.checked_number("retries", retries, least=0)
        if timeout is not None and names.checked_number("timeout", timeout, least=0) == 0:
            raise ValueError("timeout must be more than 0 seconds")
        former = tuple(names.checked("alias", alias) for alias in aliases)
        return Handler(fn, name, former, retries, policy, timeout, Takes() if inspect.isclass(fn) else _takes(fn))

    if backoff is not None and retry_on is None:
        raise ValueError("backoff says how long to wait before a retry: say retry_on which exceptions, too")
    policy = None if retry_on is None else RetryPolicy(retry_on, backoff or exponential())
    return describe if fn is None else describe(fn)


def _takes(fn: Callable[..., Any]) -> Takes:
    parameters = list(inspect.signature(fn).parameters.values())
    if not parameters or parameters[0].kind not in (parameters[0].POSITIONAL_ONLY, parameters[0].POSITIONAL_OR_KEYWORD):
        raise TypeError(f"{fn.__qualname__} must take the job as its first parameter")
    hints = _hints(fn)
    first, *others = parameters
    whole = get_args(hints.get(first.name)) if get_origin(hints.get(first.name)) is Job else ()
    others = [each for each in others if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    if others:
        fields = [
            (each.name, hints.get(each.name, Any)) if each.default is each.empty else (each.name, hints.get(each.name, Any), each.default)
            for each in others
        ]
        return Takes(parameters=msgspec.defstruct(fn.__name__, fields, kw_only=True))
    return Takes(whole=whole[0] if whole and whole[0] is not Any else None)


def _hints(fn: Callable[..., Any]) -> dict[str, Any]:
    """The types of a function's parameters, without those that are imported for the type checker alone."""
    hints: dict[str, Any] = {}
    for name, hint in getattr(inspect.unwrap(fn), "__annotations__", {}).items():
        with contextlib.suppress(NameError):
            one = SimpleNamespace(__annotations__={name: hint})
            hints |= get_type_hints(one, globalns=getattr(inspect.unwrap(fn), "__globals__", {}))
    return hints


class Handlers:
    """The handlers of a worker, by klass and alias."""

    def __init__(self, handlers: Iterable[Handler] = ()) -> None:
        self._by_klass: dict[str, Handler] = {}
        for handler in handlers:
            for klass in (handler.klass, *handler.aliases):
                if self._by_klass.setdefault(klass, handler) is not handler:
                    raise DuplicateKlass(f"{klass} is claimed by both {_place(self._by_klass[klass])} and {_place(handler)}")

    @classmethod
    def collect(cls, *sources: ModuleType | Handler | str) -> Handlers:
        """The handlers of modules (or of their dotted names), and handlers given one by one. Raises DuplicateKlass."""
        found: list[Handler] = []
        for source in sources:
            found += [handler for handler in _handlers_of(source) if handler not in found]
        return cls(found)

    def get(self, klass: str) -> Handler | None:
        """The handler of a klass; None when there is none."""
        return self._by_klass.get(klass)

    def find(self, klass: str) -> Handler:
        """The handler of a klass. Raises UnknownKlass."""
        handler = self._by_klass.get(klass)
        if handler is None:
            known = ", ".join(sorted(self._by_klass)) or "none"
            raise UnknownKlass(f"no handler here claims {klass!r}; this worker knows {known}")
        return handler

    def __len__(self) -> int:
        return len({id(handler) for handler in self._by_klass.values()})

    def __iter__(self) -> Iterator[Handler]:
        return iter({id(handler): handler for handler in self._by_klass.values()}.values())


def _handlers_of(source: ModuleType | Handler | str) -> list[Handler]:
    if isinstance(source, Handler):
        return [source]
    module = importlib.import_module(source) if isinstance(source, str) else source
    return [value for value in vars(module).values() if isinstance(value, Handler)]


def _place(handler: Handler) -> str:
    return f"{handler.fn.__module__}.{handler.fn.__qualname__}"
