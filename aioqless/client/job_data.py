"""The data of a job as JSON: any value but `false`, stored as the very bytes that were put."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn, TypeAlias

import msgspec

from aioqless import validation
from aioqless.client import json_types
from aioqless.errors import InvalidData
from aioqless.lua import constant

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"

MAX_BYTES = 1 << 20
MAX_DEPTH = constant("MAX_DATA_DEPTH")
RESULT, FAILURE = "$result", "$failure"  # the only keys of what stands for those of a step
_SKIPPED = msgspec.json.Decoder(msgspec.Raw)
_MAX_SHOWN = 200  # characters of a value in an error message


class Unread:
    """Stands for data that was not decoded yet.

    It is a class since pickle finds any other constant by a search in all modules, which takes 0.3
    ms.
    """


def decode_fields(text: bytes) -> Mapping[str, object]:
    """Return data by field; no fields if it is no object."""
    data = msgspec.json.decode(text)
    return data if isinstance(data, dict) else {}


def encode(value: object, max_bytes: int = MAX_BYTES) -> bytes:
    """Encode data as JSON.

    Args:
        value: The data. The text of a `msgspec.Raw` is taken as it is.
        max_bytes: Maximum size.

    Raises:
        InvalidData: JSON has no such value (NaN, objects, strings that are not Unicode), it is
            `false`, which other qless clients take for missing, it is nested too deeply, or it is
            too large.
    """
    if isinstance(value, msgspec.Raw):
        text = bytes(value)
        _parse(text, strict=True)
    else:
        try:
            text = json_types.encode(value)
            _check_syntax(text)
            if b"null" in text:  # which msgspec writes for NaN and infinities, too
                json.dumps(json_types.to_builtins(value), allow_nan=False)
        except Exception as error:  # an object of the application may raise anything
            why = validation.to_text(error)
            raise InvalidData(f"data {shorten(value)} can't be written as JSON: {why}") from None
    if text.strip() == b"false":
        raise InvalidData(
            "data must not be false, which other qless clients take for missing: "
            "use null, 0 or a dict"
        )
    if len(text) > max_bytes:
        raise InvalidData(
            f"data must be at most {max_bytes:,} bytes, the client's max_data (got {len(text):,}): "
            "store it elsewhere and put its address"
        )
    if text.count(b"[") + text.count(b"{") > MAX_DEPTH and _measure_depth(_parse(text)) > MAX_DEPTH:
        raise InvalidData(f"data must not be nested deeper than {MAX_DEPTH} levels")
    return text


def decode(text: str) -> Any:
    """Decode stored data.

    Raises:
        InvalidData: It is not JSON; another client may have put it.
    """
    return _parse(text.encode("utf-8", "surrogateescape"))


def fill(value: Json, results: Mapping[str, Json]) -> Json:
    """Return data with the results of steps in the places that name their jids."""
    match value:
        case {"$result": str(jid), **rest} if not rest and jid in results:
            return results[jid]
        case {"$result": list(jids), **rest} if not rest and all(jid in results for jid in jids):
            return [results[str(jid)] for jid in jids]
        case dict():
            return {name: fill(each, results) for name, each in value.items()}
        case list():
            return [fill(each, results) for each in value]
    return value


def shape(value: object) -> bytes | None:
    """Return a string that changes whenever the value changes; None if there is none."""
    if isinstance(value, msgspec.Raw):
        return None
    try:
        text = json_types.encode(value)
        # json tells NaN from null, msgspec doesn't
        return json.dumps(json_types.to_builtins(value)).encode() if b"null" in text else text
    except Exception:  # an object of the application may raise anything
        try:
            return json.dumps(value).encode()  # which encodes halves of surrogate pairs
        except Exception:
            return None


def shape_of(text: str) -> bytes | None:
    """Return the shape of the value of a stored text; None if it is not JSON."""
    try:
        return shape(decode(text))
    except InvalidData:
        return None


def merge(stored: str, read: bytes, changed: bytes) -> Json:
    """Return changed data with the keys that the type by which it was read does not know.

    Args:
        stored: The stored text.
        read: The value that was read from it, as JSON.
        changed: The value after the change, as JSON.
    """
    before, known = decode(stored), _parse(read)
    after: Json = _parse(changed)
    if isinstance(before, dict) and isinstance(known, dict) and isinstance(after, dict):
        return {name: value for name, value in before.items() if name not in known} | after
    return after


def shorten(value: object) -> str:
    """Return the `repr` of a value for an error message, cut after 200 characters."""
    text = validation.describe(value)
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…"


def _parse(text: bytes, *, strict: bool = False) -> Any:
    """Parse JSON; the slower parser reads what msgspec refuses: half a surrogate pair, 1e999."""
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError) as problem:
        try:
            return json.loads(text.decode(), parse_constant=_refuse if strict else None)
        except (ValueError, RecursionError):
            raise InvalidData(f"data {shorten(text)} is not JSON: {problem}") from None


def _check_syntax(text: bytes) -> None:
    """Refuse text that is not JSON since a `msgspec.Raw` within the value is not."""
    try:
        _SKIPPED.decode(text)
        text.decode()
    except (ValueError, RecursionError):
        _parse(text, strict=True)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _measure_depth(value: object) -> int:
    depth, level = 0, [value]
    while level := [inner for outer in level for inner in _children(outer)]:
        depth += 1
    return depth


def _children(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
