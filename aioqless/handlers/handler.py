"""Handler: a function that performs the jobs of a klass, and its options."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Literal, TypeAlias, cast

import msgspec
from typing_extensions import ParamSpec, TypeVar, Unpack

from aioqless.client import Client, json_types
from aioqless.client.jid import Jid
from aioqless.client.job import JobRun
from aioqless.client.json_types import JsonType
from aioqless.client.new_job import NONE, Branch, Names, NewJob
from aioqless.client.put_options import PUT, CheckedOptions, PutOptions
from aioqless.errors import InvalidData, UnknownKlass
from aioqless.handlers.put_call import PutCall
from aioqless.handlers.recurrence import Recurrence
from aioqless.handlers.retry_policy import RetryPolicy
from aioqless.handlers.signature import HandlerTypes, Takes
from aioqless.hints import suggest_put

METHODS = ("process", "perform")

# Returns the function that a process calls, of a function that imports the handler's. It is pickled
# and compared by value.
Loader: TypeAlias = Callable[[Callable[[], Any]], Callable[..., object]]

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P", default=...)  # what the function takes after the job
R_co = TypeVar("R_co", covariant=True, default=Any)  # its result
C = ParamSpec("C", default=...)  # what the function takes, the job included
V_co = TypeVar("V_co", covariant=True, default=Any)  # what a call returns: R, or a coroutine


def _marked(method: F) -> F:
    """Mark a function that returns a coroutine, for `iscoroutinefunction`; return it."""
    if sys.version_info >= (3, 12):
        return inspect.markcoroutinefunction(method)
    method._is_coroutine = asyncio.coroutines._is_coroutine  # type: ignore[attr-defined]  # noqa: SLF001
    return method


@suggest_put(
    "`await handler.put(name=...)`, with options by "
    "`await handler.using(delay=60).put(name=...)`, without an event loop by "
    "`SyncClient().put(handler.data(name=...))`"
)
@dataclass(frozen=True)
class Handler(Generic[P, R_co, C, V_co]):
    """A function, or a class of the older qless libraries, that performs the jobs of a klass.

    Calling it calls the function. Args are those of `@job`.
    """

    fn: Callable[..., object]
    klass: str
    types: HandlerTypes
    aliases: tuple[str, ...] = ()
    queue: str | None = None  # where its jobs are put unless the caller names a queue
    put_defaults: CheckedOptions = field(default_factory=dict, hash=False)  # checked
    retry: RetryPolicy | None = None  # None: the worker's
    timeout: float | None = None  # maximum duration of a run, in seconds
    executor: Literal["process"] | None = None  # None: the loop or a thread
    recurrence: Recurrence | None = None  # its schedule, if it has one
    result_ttl: float | None = None  # seconds that what it returns is kept
    output_ttl: float | None = None  # seconds that what it emits is kept; None: an hour
    keep_output: bool = False  # whether a later run continues the output
    loader: Loader | None = None  # loads the function in a process; None: imports it
    on_failure: Branch | None = None  # the job that is put when one of its jobs fails
    is_bulk: bool = False  # the function takes a list of jobs, and returns a list of outcomes

    @property
    def takes(self) -> Takes:
        """What the function takes; raises TypeError if an annotation can't be resolved."""
        return self.types.takes

    @property
    def returns(self) -> JsonType[object] | None:
        """The type of its results; None: any JSON."""
        return self.types.returns

    def __call__(self, *args: C.args, **kwargs: C.kwargs) -> V_co:
        """Call the function."""
        try:
            return cast(V_co, self.fn(*args, **kwargs))
        except TypeError as error:
            if error.__traceback__ and error.__traceback__.tb_next:  # raised by the function
                raise
            how = f"to put a job, write `{self.klass.rpartition('.')[2]}.data(...)`"
            raise TypeError(f"{error}: {how}") from None

    def __repr__(self) -> str:
        return f"Handler({self.klass})"

    def data(self, *args: P.args, **kwargs: P.kwargs) -> NewJob[R_co]:
        """Return a new job for this handler: `client.put(resize.data(path="a.png"), delay=60)`.

        Type checkers know the parameters.

        Args:
            *args: What its function takes after the job; a T if it takes `Job[T]` alone.
            **kwargs: The same by name.

        Raises:
            TypeError: The function does not take these.
        """
        return NewJob(self, self.takes.data(args, kwargs))

    @_marked
    def put(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, Jid[R_co]]:
        """Put (enqueue) a job for this handler: `await resize.put(path="a.png")`.

        It is put into the handler's queue, by the current client: `Client.current`. Options are
        those of the handler; others go with `resize.using(delay=60).put(path="a.png")`.

        Args:
            *args: What its function takes after the job; a T if it takes `Job[T]` alone.
            **kwargs: The same by name.

        Returns:
            The job's jid, or that of the job that has its unique key.

        Raises:
            RuntimeError: No client is open on this event loop, or several are.
            TypeError: The function does not take these.
            InvalidData: The function does not take these values.
            QueueFull: The queue, or Redis, has no room.
        """
        return PutCall(self.klass, partial(self._put, None, {}, *args, **kwargs))

    async def _put(
        self, queue: str | None, options: PutOptions, *args: P.args, **kwargs: P.kwargs
    ) -> Jid[R_co]:
        return await Client.current().put(self.data(*args, **kwargs), queue=queue, **options)

    def using(
        self, *, queue: str | None = None, **options: Unpack[PutOptions]
    ) -> PutUsing[P, R_co]:
        """Return what puts with options: `await resize.using(delay=60).put(path="a.png")`.

        Args:
            queue: Name of the queue; default: the handler's, else "default".
            options: See PutOptions.

        Raises:
            TypeError: Put has no such option.
        """
        PUT.refuse_unknown(options)
        return PutUsing(self, queue, options)

    def check(self, text: bytes, taken: Names = NONE, *, may_fail: bool = False) -> None:
        """Check that the function takes this data.

        Args:
            text: The data as JSON.
            taken: Parameters that results of other steps fill when it runs.
            may_fail: Those steps may fail, and it runs nevertheless.

        Raises:
            InvalidData: It does not.
        """
        self.takes.check(self.klass, text, taken, may_fail=may_fail)

    def values(self, text: bytes, taken: Names = NONE) -> dict[str, object]:
        """Return the data by field, with the function's defaults for those that are missing.

        Args:
            text: The data as JSON.
            taken: Parameters that results of other steps fill when it runs.

        Raises:
            InvalidData: The function does not take it.
        """
        return self.takes.values(self.klass, text, taken)

    def read_result(self, value: object) -> R_co:
        """Return a stored result as the type that the function returns.

        Args:
            value: The result as JSON has it.

        Raises:
            InvalidData: It is not of this type.
        """
        if self.returns is None:
            return cast(R_co, value)
        return cast(R_co, self._read_result(json_types.encode(value)))

    def check_result(self, text: bytes) -> None:
        """Check that a result is what the function says that it returns.

        Args:
            text: The result as JSON.

        Raises:
            InvalidData: It is not.
        """
        if self.returns is not None:
            self._read_result(text)

    def _read_result(self, text: bytes) -> object:
        assert self.returns is not None
        try:
            return self.returns.decode(text)
        except msgspec.MsgspecError as error:
            raise InvalidData(f"the result is not what {self.klass} returns: {error}") from None

    def bind(self, run: JobRun) -> tuple[Callable[..., object], dict[str, object]]:
        """Return what to call with the job, and the arguments from its data.

        Args:
            run: The run of the job.

        Raises:
            InvalidData: The function does not take its data.
            UnknownKlass: The class has no method for its queue.
        """
        text = run.text.encode("utf-8", "surrogateescape")
        arguments = self.takes.arguments(self.klass, text, run)
        if isinstance(self.fn, type):
            return _method_of(self.fn, self.klass, run.fields.queue), arguments
        return self.fn, arguments


@dataclass(frozen=True)
class PutUsing(Generic[P, R_co]):
    """A handler with options of put, as `Handler.using` returns it."""

    handler: Handler[P, R_co]
    queue: str | None
    options: PutOptions

    @_marked
    def put(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, Jid[R_co]]:
        """Put (enqueue) a job with these options, as `Handler.put` does.

        Args:
            *args: What the function takes after the job; a T if it takes `Job[T]` alone.
            **kwargs: The same by name.
        """
        handler = self.handler
        begin = partial(handler._put, self.queue, self.options, *args, **kwargs)  # noqa: SLF001
        return PutCall(handler.klass, begin)


def _method_of(cls: type, klass: str, queue: str) -> Callable[..., object]:
    """Return a qless class' static method for a queue: of its name, `process` or `perform`."""
    for name in (queue, *METHODS):
        if not name.startswith("_") and any(name in vars(each) for each in cls.__mro__[:-1]):
            method = getattr(cls, name)
            if callable(method):
                return cast(Callable[..., object], method)
    raise UnknownKlass(f"class {klass} has no method {queue!r}, nor {' or '.join(METHODS)}")
