"""Messages between a worker and its processes: pickled values, each after its length.

Both ends are the same program on the same machine, and nothing in them was read from Redis but the
job's own fields.
"""

from __future__ import annotations

import importlib
import pickle
import socket
import struct
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from aioqless import validation
from aioqless.client.job import JobRun, StopReason
from aioqless.contrib.process_pool.context_vars import Variables
from aioqless.handlers import Handler
from aioqless.handlers.handler import Loader
from aioqless.runtime.exception_fields import (
    args_of,
    attributes_of,
    forget_origin,
    set_cause,
    traceback_of,
)
from aioqless.worker.failures import LONGEST_MESSAGE, RemoteTraceback, format_error

LENGTH = struct.Struct("!Q")
MAX_ERROR = 1 << 20  # bytes of an exception


@dataclass(frozen=True)
class FunctionRef:
    """Refers to a function by its module and its name there, and to what loads it."""

    module: str
    name: str
    loader: Loader | None = None

    @classmethod
    def of(cls, handler: Handler[...]) -> FunctionRef:
        """Return the reference to a handler's function.

        Raises:
            ValueError: Another process would not find it by that.
        """
        if handler.takes.injected:
            names = ", ".join(handler.takes.injected)
            raise ValueError(
                f"{handler.klass} is to run in a process, where the worker's resources can't be "
                f"injected: {names}"
            )
        if not hasattr(socket, "AF_UNIX"):
            raise ValueError(
                f"{handler.klass} is to run in a process, which needs Linux, macOS or another Unix"
            )
        ref = cls(handler.fn.__module__, handler.fn.__qualname__, handler.loader)
        if ref.module == "__main__":
            raise ValueError(
                f"{ref.name} is to run in a process, which can't import it from the main script: "
                "move it to a module"
            )
        try:
            found: object = ref.find()
        except (ImportError, AttributeError):
            found = None
        if found is not handler.fn:
            raise ValueError(
                f"{ref.name} is to run in a process, which doesn't find it as {ref.name} in "
                f"{ref.module}"
            )
        return ref

    def load(self) -> Callable[..., object]:
        """Return the function for calls, imported now."""
        return self.loader(self.find) if self.loader else self.find()

    def find(self) -> Any:
        """Return the function itself, imported now."""
        found: Any = importlib.import_module(self.module)
        for name in self.name.split("."):
            found = getattr(found, name)
        return found.fn if isinstance(found, Handler) else found


@dataclass(frozen=True)
class JobRequest:
    """Asks a process to perform a job, or those of a bulk, whose results are stored or not.

    The lock lasts until `deadline`, by time.monotonic, which all processes share.
    """

    function: FunctionRef
    runs: Sequence[JobRun]
    variables: Variables
    deadline: float
    stores_result: bool = False
    is_bulk: bool = False


@dataclass(frozen=True)
class StopRequest:
    """Asks a process to stop its job."""

    reason: StopReason


@dataclass(frozen=True)
class LockRenewed:
    """Sends a process the new deadline of its job's lock."""

    deadline: float


@dataclass(frozen=True)
class Emission:
    """A value that the job with a jid emits, as JSON."""

    jid: str
    text: bytes


@dataclass(frozen=True)
class ProgressReport:
    """How much of the job with a jid is done."""

    jid: str
    share: float
    message: str


@dataclass(frozen=True)
class JobReply:
    """How a call of a handler ended.

    `error` is pickled, with its traceback; `data` is each job's, where the handler changed it. The
    run is `lost` if its calls to Redis got no answer while its lock lasted.
    """

    result: object = None
    data: Sequence[bytes | None] = ()
    error: tuple[bytes, str] | None = None
    lost: bool = False


def frame(message: object) -> bytes:
    """Return a message as it is sent."""
    body = pickle.dumps(message)
    return LENGTH.pack(len(body)) + body


def reply_with_result(result: object, data: Sequence[bytes | None]) -> bytes:
    """Return the reply with a result; one with an error if it can't be pickled."""
    try:
        return frame(JobReply(result, data))
    except MemoryError:
        raise
    except Exception as error:
        return reply_with_error(
            TypeError(
                "what it returned can't be sent from its process to the worker's: "
                f"{validation.to_text(error)}"
            )
        )


def reply_with_error(error: BaseException, data: Sequence[bytes | None] = ()) -> bytes:
    """Return the reply with the exception that a handler raised, and the jobs' changed data.

    If packing it fails, as it does when memory is used up, the frames of the traceback are cleared
    for a second attempt.
    """
    try:
        return frame(JobReply(data=data, error=_pack_error(error)))
    except Exception:
        traceback.clear_frames(traceback_of(error))
        forget_origin(error)
        return frame(JobReply(data=data, error=_pack_error(error)))


def _pack_error(error: BaseException) -> tuple[bytes, str]:
    """Pickle an exception, and format its traceback.

    An exception that its class can't recreate is created without it; one that is too large, with
    the beginnings of its texts; one whose attributes can't be pickled, without those; one whose
    class can't be found by name, as one of a class of that name.
    """
    kind, text = type(error), (_shorten(validation.to_text(error)),)
    attributes, args = attributes_of(error), args_of(error)
    shortened = {name: _shorten(value) for name, value in attributes.items()}
    for attempt in (
        error,
        _Bare(kind, args, attributes),
        _Bare(kind, tuple(map(_shorten, args)), shortened),
        _Bare(kind, text),
        _Bare(validation.type_name(error), text),
    ):
        try:
            body = pickle.dumps(attempt)
            if len(body) > MAX_ERROR:
                raise ValueError(f"an error must have at most {MAX_ERROR:,} bytes")
            _create(pickle.loads(body))
            return body, format_error(error)
        except BaseException as wrong:  # whatever an exception's own methods raise
            refused = wrong
    raise refused


def _shorten(value: Any) -> Any:
    """Return the beginning of a long text, and other values as they are."""
    return value[:LONGEST_MESSAGE] if isinstance(value, (str, bytes)) else value


def error_of(error: tuple[bytes, str]) -> BaseException:
    """Return the exception of a reply, with its traceback there as the cause."""
    created = _create(pickle.loads(error[0]))
    set_cause(created, RemoteTraceback(error[1]))
    return created


@dataclass(frozen=True)
class _Bare:
    """An exception that is created without calling its class."""

    kind: type[BaseException] | str
    args: tuple[object, ...]
    attributes: dict[str, object] = field(default_factory=dict)


def _create(error: BaseException | _Bare) -> BaseException:
    if isinstance(error, BaseException):
        return error
    kind: type[BaseException] = (
        type(error.kind, (Exception,), {}) if isinstance(error.kind, str) else error.kind
    )
    created = kind.__new__(kind, *error.args)
    created.args = error.args
    vars(created).update(error.attributes)
    return created
