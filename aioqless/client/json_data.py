"""A job's data: any JSON value but `false`, kept as the very bytes that were put."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from aioqless.errors import InvalidData
from aioqless.lua import constant

LIMIT = 1 << 20
DEEPEST = constant("MAX_DATA_DEPTH")


class Unread:
    """Stands for data that nobody has read. A class, since pickle looks for any other constant in
    all modules, which takes 0.3 ms."""


def encoded(value: Any, limit: int = LIMIT) -> bytes:
    """The JSON text of a value; `msgspec.Raw` holds a text that is JSON already and is put as it
    stands.

    Raises InvalidData for what JSON can't say (NaN, objects, texts that aren't Unicode), for
    `false`, which other qless clients take for missing, for nesting beyond 900 levels, and for more
    than `limit` bytes."""
    if isinstance(value, msgspec.Raw):
        text = bytes(value)
        _parsed(text, strict=True)
    else:
        try:
            text = msgspec.json.encode(value)
            if b"null" in text:  # where msgspec hides NaN and infinities
                json.dumps(msgspec.to_builtins(value), allow_nan=False)
        except (
            TypeError,
            ValueError,
            RecursionError,
            OverflowError,
            UnicodeEncodeError,
            msgspec.MsgspecError,
        ) as error:
            raise InvalidData(f"data {shown(value)} can't be written as JSON: {error}") from None
    if text.strip() == b"false":
        raise InvalidData(
            "data is false, which other qless clients take for missing: use null, 0 or a dict"
        )
    if len(text) > limit:
        raise InvalidData(
            f"data is {len(text):,} bytes, more than the client's max_data of {limit:,}; keep it elsewhere and put its address"
        )
    if text.count(b"[") + text.count(b"{") > DEEPEST and _depth(_parsed(text)) > DEEPEST:
        raise InvalidData(f"data is nested deeper than {DEEPEST} levels")
    return text


def decoded(text: str) -> Any:
    """The value of a stored text. Raises InvalidData for a text that isn't JSON, which a careless
    client may have put."""
    return _parsed(text.encode("utf-8", "surrogateescape"))


def shape(value: Any) -> bytes | None:
    """A text by which to see whether a value was changed; None for a value of which that can't be
    told."""
    if isinstance(value, msgspec.Raw):
        return None
    try:
        text = msgspec.json.encode(value)
        return (
            json.dumps(msgspec.to_builtins(value)).encode() if b"null" in text else text
        )  # which tells NaN from null
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        try:
            return json.dumps(value).encode()  # which knows halves of surrogate pairs
        except (TypeError, ValueError, RecursionError):
            return None


def shape_of(text: str) -> bytes | None:
    """The shape of what a stored text says; None for a text that isn't JSON."""
    try:
        return shape(decoded(text))
    except InvalidData:
        return None


def joined(stored: str, read: bytes, text: bytes) -> Any:
    """What is to be stored when a typed reading of a stored text was changed to `text`: keys that
    the reading left out are kept."""
    before, known, now = decoded(stored), _parsed(read), _parsed(text)
    if isinstance(before, dict) and isinstance(known, dict) and isinstance(now, dict):
        return {name: value for name, value in before.items() if name not in known} | now
    return now


def _parsed(text: bytes, *, strict: bool = False) -> Any:
    """What JSON's grammar allows and msgspec doesn't read (half a surrogate pair, 1e999) is left to
    the slower parser."""
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError) as problem:
        try:
            return json.loads(text.decode(), parse_constant=_refused if strict else None)
        except (ValueError, RecursionError):
            raise InvalidData(f"data {shown(text)} is not JSON: {problem}") from None


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level := [inner for outer in level for inner in _inside(outer)]:
        depth += 1
    return depth


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def shown(value: Any) -> str:
    """A value for an error message, cut short."""
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "…"
