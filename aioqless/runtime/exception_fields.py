"""The fields of exceptions, past properties and methods with which a class may hide them.

An application's exception may raise whatever it likes from its own `__getattr__` or properties.
A report of the error reads these fields instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType, UnionType

_FIELDS = BaseException.__dict__


def error_is(error: BaseException, kind: type[BaseException] | UnionType) -> bool:
    """Return whether an `except` clause of this class, or of one of these, takes an exception.

    `isinstance` asks an exception for its `__class__`, which may raise.
    """
    return issubclass(type(error), kind)


def args_of(error: BaseException) -> tuple[object, ...]:
    """Return the arguments of an exception."""
    args: tuple[object, ...] = _FIELDS["args"].__get__(error)
    return args


def attributes_of(error: BaseException) -> dict[str, object]:
    """Return the instance attributes of an exception."""
    attributes: dict[str, object] = _FIELDS["__dict__"].__get__(error)
    return attributes


def traceback_of(error: BaseException) -> TracebackType | None:
    """Return where an exception was raised."""
    first: TracebackType | None = _FIELDS["__traceback__"].__get__(error)
    return first


def cause_of(error: BaseException) -> BaseException | None:
    """Return what an exception was raised from."""
    cause: BaseException | None = _FIELDS["__cause__"].__get__(error)
    return cause


def context_of(error: BaseException) -> BaseException | None:
    """Return the exception that was handled when this one was raised; None if suppressed."""
    if _FIELDS["__suppress_context__"].__get__(error):
        return None
    context: BaseException | None = _FIELDS["__context__"].__get__(error)
    return context


def members_of(group: BaseExceptionGroup[BaseException]) -> Sequence[BaseException]:
    """Return the members of a group."""
    members: Sequence[BaseException] = BaseExceptionGroup.__dict__["exceptions"].__get__(group)
    return members


def set_cause(error: BaseException, cause: BaseException | None) -> None:
    """Set what an exception was raised from."""
    _FIELDS["__cause__"].__set__(error, cause)


def forget_origin(error: BaseException) -> None:
    """Remove cause, context and traceback of an exception."""
    set_cause(error, None)
    _FIELDS["__context__"].__set__(error, None)
    _FIELDS["__traceback__"].__set__(error, None)
