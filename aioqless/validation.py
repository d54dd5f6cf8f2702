"""What may be a name or a number in a call: checked here to tell the caller early, and again by the
scripts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from aioqless.lua import constant

LONGEST = constant("MAX_NAME_LENGTH")
_TAKEN = ("-history", "-dependencies", "-dependents")


def checked(what: str, name: str) -> str:
    """`name`, if it can be the name of a new queue, worker, jid, tag, group or klass. Raises
    ValueError, and TypeError."""
    if not isinstance(name, str):
        raise TypeError(f"{what} must be a text, not {name!r}")
    if not name:
        raise ValueError(f"{what} must not be empty")
    try:
        size = len(name.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        raise ValueError(
            f"{what} {name!r} is not Unicode: it has half of a surrogate pair"
        ) from None
    if size > LONGEST:
        raise ValueError(f"{what} {name[:60]!r}… is longer than {LONGEST} bytes")
    if any(ord(character) < 32 or ord(character) == 127 for character in name):
        raise ValueError(f"{what} {name!r} has a control character")
    return name


def checked_list(what: str, texts: Iterable[str]) -> list[str]:
    """The texts, if each can be a name. One text alone is refused: it would count as a list of its
    characters."""
    if isinstance(texts, str):
        raise TypeError(f"{what} must be a list of texts, not the text {texts!r}")
    return [checked(f"each of {what}", text) for text in texts]


def checked_texts(what: str, texts: Mapping[str, str]) -> dict[str, str]:
    """The texts by name, if they are that."""
    if not isinstance(texts, Mapping) or not all(
        isinstance(each, str) for pair in texts.items() for each in pair
    ):
        raise TypeError(f"{what} must be a dict of texts by name, not {texts!r}")
    return dict(texts)


def fitted(name: str) -> str:
    """The text nearest to `name` that can be one: what is wrong in it replaced, and of too long a
    text the end."""
    text = "".join(
        "?" if ord(character) < 32 or ord(character) == 127 else character
        for character in readable(name)
    )
    return text.encode()[-LONGEST:].decode(errors="ignore")


def readable(text: object) -> str:
    """Return the text of any object, also of an exception whose `__str__` raises, with halves of
    surrogate pairs written out."""
    return _text_by(str, text)


def describe(value: object) -> str:
    """Return the `repr` of any object, also of one whose `__repr__` raises."""
    return _text_by(repr, value)


def _text_by(method: Callable[[object], str], value: object) -> str:
    try:
        return method(value).encode("utf-8", "backslashreplace").decode()
    except Exception:  # a user's class may raise anything
        return f"<{type(value).__name__} without a readable text>"


def plain(text: str, *, lines: bool = False) -> str:
    """Return a text with characters escaped that a terminal obeys, or that are invisible or change
    the direction of text: jobs hold what strangers wrote. With `lines`, line ends and tabs are
    kept."""
    if text.isprintable():
        return text
    return "".join(
        each
        if each.isprintable() or (lines and each in "\n\t")
        else each.encode("unicode_escape").decode()
        for each in text
    )


def checked_jid(jid: str) -> str:
    """`jid`, if a new job can have it: some endings would spell the keys of another job."""
    if checked("jid", jid).endswith(_TAKEN):
        raise ValueError(
            f"jid {jid!r} ends in one of {', '.join(_TAKEN)}, as keys of other jobs do"
        )
    return jid


def checked_number(what: str, number: float, *, least: float = -math.inf) -> float:
    """`number`, if it is finite and no less than `least`. Raises ValueError, and TypeError."""
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise TypeError(f"{what} must be a number, not {number!r}")
    if not math.isfinite(number) or number < least:
        raise ValueError(
            f"{what} {number!r} must be finite"
            + (f" and no less than {least}" if math.isfinite(least) else "")
        )
    return number
