"""What travels between a worker and its processes: pickled values, each behind its length.

Both ends are the same program on the same machine, and nothing of it was read from Redis but the
job's own fields."""

from __future__ import annotations

import importlib
import pickle
import socket
import struct
import traceback
from dataclasses import dataclass, field
from typing import Any

from aioqless import validation
from aioqless.client.job import Job, Reason
from aioqless.handlers import Handler
from aioqless.worker.executors.context_vars import Variables
from aioqless.worker.outcome import There, brief

LENGTH = struct.Struct("!Q")


@dataclass(frozen=True)
class Place:
    """Where a function is: a module and a name in it."""

    module: str
    name: str

    @classmethod
    def of(cls, handler: Handler[...]) -> Place:
        """The place of a handler's function. Raises ValueError when another process wouldn't find
        it there."""
        if handler.takes.given:
            given = ", ".join(handler.takes.given)
            raise ValueError(
                f"{handler.klass} is to run in a process, where resources of the worker can't be given to it: {given}"
            )
        if not hasattr(socket, "AF_UNIX"):
            raise ValueError(
                f"{handler.klass} is to run in a process, which needs Linux, macOS or another Unix"
            )
        place = cls(handler.fn.__module__, handler.fn.__qualname__)
        if place.module == "__main__":
            raise ValueError(
                f"{place.name} is to run in a process, which can't import it from the main script: move it to a module"
            )
        try:
            found: Any = place.function
        except (ImportError, AttributeError):
            found = None
        if found is not handler.fn:
            raise ValueError(
                f"{place.name} is to run in a process, which doesn't find it as {place.name} in {place.module}"
            )
        return place

    @property
    def function(self) -> Any:
        """What is there now. Raises ImportError and AttributeError."""
        found: Any = importlib.import_module(self.module)
        for name in self.name.split("."):
            found = getattr(found, name)
        return found.fn if isinstance(found, Handler) else found


@dataclass(frozen=True)
class Order:
    """Perform this job."""

    place: Place
    job: Job
    variables: Variables


@dataclass(frozen=True)
class Stop:
    """The job that runs is not to run any more."""

    reason: Reason


@dataclass(frozen=True)
class Answer:
    """How a job ended: what it returned, or `error`, pickled, and its traceback; and the data to
    store where it changed them."""

    result: Any = None
    data: bytes | None = None
    error: tuple[bytes, str] | None = None


def frame(parcel: object) -> bytes:
    """A parcel as it is sent. Raises what pickle does for one that can't be."""
    body = pickle.dumps(parcel)
    return LENGTH.pack(len(body)) + body


def result_of(result: Any, data: bytes | None) -> bytes:
    """The answer of a handler that returned something, which must be able to travel. Raises
    MemoryError."""
    try:
        return frame(Answer(result, data))
    except MemoryError:
        raise
    except Exception as error:
        return failure_of(
            TypeError(
                f"what it returned can't be sent from its process to the worker's: {validation.readable(error)}"
            )
        )


def failure_of(error: BaseException) -> bytes:
    """Pack the exception that a handler raised and its traceback.

    If that fails, as it does when memory is used up, what the frames of the traceback hold is given
    up for a second attempt."""
    try:
        return frame(Answer(error=_packed(error)))
    except Exception:
        traceback.clear_frames(error.__traceback__)
        error.__traceback__ = error.__cause__ = error.__context__ = None
        return frame(Answer(error=_packed(error)))


def _packed(error: BaseException) -> tuple[bytes, str]:
    """Pickle an exception, and format its traceback.

    An exception that can't be made anew by its class is made without it; one whose attributes can't
    be pickled, without those; one of a class that can't be found by its name, as one of some class
    of that name."""
    kind, text = type(error), (validation.readable(error),)
    for attempt in (
        error,
        _Bare(kind, error.args, vars(error)),
        _Bare(kind, text),
        _Bare(kind.__name__, text),
    ):
        try:
            body = pickle.dumps(attempt)
            _made(pickle.loads(body))
            return body, brief(error)
        except Exception as wrong:  # whatever an exception's own methods raise
            refused = wrong
    raise refused


def error_of(error: tuple[bytes, str]) -> BaseException:
    """The exception, with the traceback that it had there as its cause."""
    made = _made(pickle.loads(error[0]))
    made.__cause__ = There(error[1])
    return made


@dataclass(frozen=True)
class _Bare:
    """An exception that is made without its class' own way to make one."""

    kind: type[BaseException] | str
    args: tuple[Any, ...]
    attributes: dict[str, Any] = field(default_factory=dict)


def _made(error: BaseException | _Bare) -> BaseException:
    if isinstance(error, BaseException):
        return error
    kind: type[BaseException] = (
        type(error.kind, (Exception,), {}) if isinstance(error.kind, str) else error.kind
    )
    made = kind.__new__(kind, *error.args)
    made.args = error.args
    vars(made).update(error.attributes)
    return made
