"""ValueType: how the values of a step or cursor are written as JSON, and read in their type."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from aioqless.client import job_data
from aioqless.client.jid import Jid
from aioqless.client.json_types import JsonType
from aioqless.errors import InvalidData

T = TypeVar("T")


class ValueType(Generic[T]):
    """Writes and reads the values of one step, cursor or signal.

    Args:
        what: Its kind and name, for errors.
        hint: The type of the values; None: any JSON.
        max_bytes: Maximum size of a value.
    """

    def __init__(self, what: str, hint: object = None, max_bytes: int = job_data.MAX_BYTES) -> None:
        self._what = what
        if (get_origin(hint) or hint) is Jid:  # what put returns is stored as the string that it is
            hint = str
        self._type: JsonType[T] | None = None if hint in (None, Any, object) else JsonType(hint)
        self._max_bytes = max_bytes

    def encode(self, value: object) -> bytes:
        """Return a value as JSON.

        Raises:
            InvalidData: JSON has no such value, or it is not of the type.
        """
        try:
            text = b"false" if value is False else job_data.encode(value, self._max_bytes)
        except InvalidData as wrong:
            raise InvalidData(f"{self._what} can't be stored: {wrong}") from None
        self.decode(text)
        return text

    def decode(self, text: bytes) -> T:
        """Return a value of the type.

        Raises:
            InvalidData: It is not of the type.
        """
        try:
            if self._type is None:
                value: T = job_data.decode(text.decode("utf-8", "surrogateescape"))
                return value
            return self._type.decode(text)
        except msgspec.MsgspecError as error:
            raise InvalidData(f"{self._what} is not of its type: {error}") from None


def type_returned_by(function: Callable[..., object]) -> object:
    """Return the type that a function says that it returns; None if it doesn't say.

    Raises:
        TypeError: Its annotation names something that can't be found.
    """
    while isinstance(function, functools.partial):
        function = function.func
    target = inspect.unwrap(function)
    if not (inspect.isroutine(target) or inspect.isclass(target)):
        target = type(target).__call__  # an object that can be called
    hint = getattr(target, "__annotations__", {}).get("return")
    if inspect.isclass(target) or not isinstance(hint, str):
        return None if inspect.isclass(target) else _type_awaited(hint)
    try:
        return _type_awaited(get_type_hints(target, include_extras=True)["return"])
    except (NameError, AttributeError) as error:
        raise TypeError(
            f"the annotation of what {target.__qualname__} returns can't be resolved: {error}; "
            "define it in the module, outside of `if TYPE_CHECKING:`"
        ) from None


def _type_awaited(hint: object) -> object:
    """Return the type that a coroutine returns, of a function that returns one; else the type."""
    return get_args(hint)[-1] if get_origin(hint) in (Awaitable, Coroutine) else hint
