"""Checks of names, numbers and times, made early in the client; the scripts check again."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Generic, TypeAlias, cast

from typing_extensions import TypeVar

from aioqless.lua import constant

D = TypeVar("D", bound=float | None, default=float)

# A duration: a number of seconds, or a timedelta.
Seconds: TypeAlias = float | timedelta

LONGEST = constant("MAX_NAME_LENGTH")
_COMMON_NAME = re.compile(rf"[ -~]{{1,{LONGEST}}}")  # ASCII without control characters
_CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f]")
_NAME_OF_CLASS = type.__dict__["__name__"].__get__  # which a metaclass can't replace
MAX_MESSAGE = 16_384  # bytes of the message of a failure, a retry or an event of a job
_ROOM_FOR_NOTE = 60  # bytes for the number of characters that are left out
_TAKEN = ("-history", "-dependencies", "-dependents")


def check_name(what: str, name: str) -> str:
    """Return a name if a new queue, worker, job, tag, group or klass can have it.

    Raises:
        ValueError: It is empty, too long, or has characters that are not allowed.
        TypeError: It is not a string.
    """
    if isinstance(name, str) and _COMMON_NAME.fullmatch(name):
        return name
    if not isinstance(name, str):
        raise TypeError(f"{what} must be a string (got {name!r})")
    if not name:
        raise ValueError(f"{what} must not be empty")
    try:
        size = len(name.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        raise ValueError(
            f"{what} {name!r} is not valid Unicode: it contains half of a surrogate pair"
        ) from None
    if size > LONGEST:
        raise ValueError(
            f"{what} {name[:60]!r}… must be at most {LONGEST} bytes of UTF-8 (got {size})"
        )
    if _CONTROL_CHARACTER.search(name):
        raise ValueError(f"{what} {name!r} contains a control character: remove it")
    return name


def check_names(what: str, texts: Iterable[str]) -> list[str]:
    """Return the strings if each can be a name.

    Raises:
        ValueError: One can't.
        TypeError: It is a single text, which would count as a list of its characters.
    """
    if isinstance(texts, str):
        raise TypeError(f"{what} must be a list of strings (got the string {texts!r})")
    return [check_name(f"each of {what}", text) for text in texts]


def check_texts(what: str, texts: Mapping[str, str]) -> dict[str, str]:
    """Return strings by name.

    Raises:
        TypeError: It is something else.
    """
    if not isinstance(texts, Mapping) or not all(
        isinstance(each, str) for pair in texts.items() for each in pair
    ):
        raise TypeError(f"{what} must be a dict of strings by name (got {texts!r})")
    return dict(texts)


def fit_name(name: str) -> str:
    """Make a string a name: replace characters that are not allowed, keep the end of a long one."""
    text = _CONTROL_CHARACTER.sub("?", to_text(name))
    return text.encode()[-LONGEST:].decode(errors="ignore")


def to_text(text: object) -> str:
    """Return the text of any object, also of an exception whose `__str__` raises.

    Halves of surrogate pairs are escaped.
    """
    return _text_by(str, text)


def describe(value: object) -> str:
    """Return the `repr` of any object, also of one whose `__repr__` raises."""
    return _text_by(repr, value)


def type_name(value: object) -> str:
    """Return the name of any object's class, also of one whose metaclass hides it."""
    name: str = _NAME_OF_CLASS(type(value))
    return name


def limit_message(message: str) -> str:
    """Return a message of at most MAX_MESSAGE bytes of UTF-8.

    A longer one is cut, and ends in the number of characters that are left out.

    Raises:
        TypeError: It is no string.
    """
    if not isinstance(message, str):
        raise TypeError(f"message must be a string (got {describe(message)})")
    if len(message) * 4 <= MAX_MESSAGE:  # a character takes at most four bytes
        return message
    encoded = message.encode("utf-8", "backslashreplace")
    if len(encoded) <= MAX_MESSAGE:
        return message
    kept = encoded[: MAX_MESSAGE - _ROOM_FOR_NOTE].decode("utf-8", "ignore")
    return f"{kept}… ({len(message) - len(kept):,} characters left out)"


def _text_by(method: Callable[[object], str], value: object) -> str:
    try:
        return method(value).encode("utf-8", "backslashreplace").decode()
    except BaseException:  # a user's class may raise anything, SystemExit too
        return f"<{type_name(value)} whose text cannot be read>"


def describe_json_error(text: bytes, error: Exception) -> str:
    """Return why text is no JSON: what msgspec says, except of half of a surrogate pair."""
    try:
        json.dumps(json.loads(text), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return "JSON is malformed: a string has half of a surrogate pair"
    except (ValueError, RecursionError):
        pass
    return to_text(error)


def plain(text: str, *, lines: bool = False) -> str:
    """Escape characters that control a terminal, are invisible, or change the direction of text.

    Jobs contain what other people wrote.

    Args:
        text: The text.
        lines: Keep line ends and tabs.
    """
    if text.isprintable():
        return text
    return "".join(
        each
        if each.isprintable() or (lines and each in "\n\t")
        else each.encode("unicode_escape").decode()
        for each in text
    )


def check_jid(what: str, jid: str) -> str:
    """Return a jid if a new job can have it: some endings would name keys of another job.

    Raises:
        ValueError: It can't.
        TypeError: It is not a string.
    """
    if check_name(what, jid).endswith(_TAKEN):
        raise ValueError(
            f"{what} {jid!r} must not end in {', '.join(_TAKEN)}: it would be another job's key"
        )
    return jid


def check_number(what: str, number: float, *, least: float = -math.inf) -> float:
    """Return a number if it is finite and at least `least`.

    Raises:
        ValueError: It isn't.
        TypeError: It is no number.
    """
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise TypeError(f"{what} must be a number (got {number!r})")
    if not math.isfinite(number) or number < least:
        raise ValueError(
            f"{what} must be finite"
            + (f" and >= {least}" if math.isfinite(least) else "")
            + f" (got {number!r})"
        )
    return number


def check_integer(what: str, number: int, *, least: int = 1) -> int:
    """Return an integer if it is at least `least`; raise ValueError if it isn't."""
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise ValueError(f"{what} must be an integer >= {least} (got {number!r})")
    return number


def check_bool(what: str, value: bool) -> bool:
    """Return a bool; raise TypeError if it is something else."""
    if not isinstance(value, bool):
        raise TypeError(f"{what} must be True or False (got {value!r})")
    return value


def check_seconds(what: str, duration: Seconds, *, least: float = 0) -> float:
    """Return a duration in seconds if it is finite and at least `least`.

    Raises:
        ValueError: It isn't.
        TypeError: It is neither a number nor a timedelta.
    """
    if isinstance(duration, timedelta):
        seconds = duration.total_seconds()
        duration = int(seconds) if seconds.is_integer() else seconds
    elif isinstance(duration, datetime):
        raise TypeError(
            f"{what} must be a duration, such as a timedelta; put takes a time as at= "
            f"(got {duration.isoformat()})"
        )
    elif isinstance(duration, bool) or not isinstance(duration, int | float):
        raise TypeError(f"{what} must be a number of seconds or a timedelta (got {duration!r})")
    return duration if least <= duration < math.inf else check_number(what, duration, least=least)


def check_time(what: str, time: datetime) -> float:
    """Return a time in seconds since 1970.

    Raises:
        TypeError: It is no datetime.
        ValueError: It has no time zone.
    """
    if not isinstance(time, datetime):
        raise TypeError(f"{what} must be a datetime with a time zone (got {time!r})")
    if time.utcoffset() is None:
        raise ValueError(
            f"{what} {time.isoformat()} has no time zone: pass one, such as "
            "datetime.now(UTC) + timedelta(hours=1)"
        )
    return time.timestamp()


class Duration(Generic[D]):
    """A field of a dataclass that is set as seconds or a timedelta, and read as seconds.

    Args:
        default: Seconds; None: it may be None.
        least: The minimum, in seconds.
    """

    def __init__(self, default: D, *, least: float = 0) -> None:
        self._default = default
        self._least = least
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> D:
        if instance is None:  # the dataclass asks for the default
            return self._default
        seconds: D = instance.__dict__[self._name]
        return seconds

    def __set__(self, instance: object, duration: Seconds | D) -> None:
        seconds = None
        if duration is not None or self._default is not None:
            seconds = check_seconds(self._name, cast("Seconds", duration), least=self._least)
        instance.__dict__[self._name] = seconds
