"""Uniqueness, concurrency limit and rate limit of a job: checked, merged and encoded."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from typing import TypeAlias, cast

import msgspec

from aioqless import validation
from aioqless.client import json_types
from aioqless.client.put_options import ConstraintOptions, Key
from aioqless.errors import InvalidData
from aioqless.lua import constant
from aioqless.validation import Seconds

Values: TypeAlias = Callable[[], Mapping[str, object]]

MAX_CONCURRENT = constant("MAX_CONCURRENT")
MAX_STARTS = constant("MAX_RATE_STARTS")
MAX_SECONDS = 1e10
NAMES = tuple(ConstraintOptions.__annotations__)


def select_constraints(options: Mapping[str, object]) -> ConstraintOptions:
    """Return the options that are constraints and are set."""
    chosen = {name: options[name] for name in NAMES if options.get(name) is not None}
    return cast(ConstraintOptions, chosen)


def check_constraints(constraints: ConstraintOptions) -> ConstraintOptions:
    """Return the constraints with their durations in seconds; check types and ranges.

    Raises:
        TypeError: A value has the wrong type.
        ValueError: A value is out of range, or two exclude each other.
    """
    for what, key in (
        ("unique", constraints.get("unique")),
        ("concurrency_key", constraints.get("concurrency_key")),
    ):
        if isinstance(key, str):
            validation.check_name(what, key)
        elif key is not None and not _is_fields(key):
            raise TypeError(
                f"{what} must be a string, or a tuple of the names of fields of the data "
                f"(got {key!r})"
            )
    checked = constraints.copy()
    until, duration = constraints.get("unique_until"), constraints.get("unique_for")
    if until not in (None, "started", "done"):
        raise ValueError(f"unique_until must be 'started' or 'done' (got {until!r})")
    if until and duration is not None:
        raise ValueError("unique_until and unique_for are mutually exclusive")
    if duration is not None:
        checked["unique_for"] = _check_period("unique_for", duration)
    if (most := constraints.get("max_concurrent")) is not None:
        _check_whole("max_concurrent", most, MAX_CONCURRENT)
    if (rate := constraints.get("rate_limit")) is not None:
        if not isinstance(rate, tuple) or len(rate) != 2:
            raise TypeError(
                "rate_limit must be a tuple of a number of starts and a period, in seconds or as a "
                f"timedelta, such as (10, 60) (got {rate!r})"
            )
        _check_whole("rate_limit", rate[0], MAX_STARTS)
        checked["rate_limit"] = (rate[0], _check_period("rate_limit's period", rate[1]))
    return checked


def merge_constraints(own: ConstraintOptions, declared: ConstraintOptions) -> ConstraintOptions:
    """Return the constraints of a job: its own override those of its handler."""
    merged = declared.copy()
    if "unique_until" in own or "unique_for" in own:
        merged.pop("unique_until", None)
        merged.pop("unique_for", None)
    merged.update(own)
    return merged


def encode_constraints(
    constraints: ConstraintOptions, klass: str, values: Values, if_exists: str | None = None
) -> bytes:
    """Encode the constraints of one job as the scripts take them.

    Args:
        constraints: Checked constraints.
        klass: Klass of the job.
        values: Returns the job's data, of which keys are made.
        if_exists: The option of put.

    Raises:
        InvalidData: The data lacks a field that a key is made of.
        ValueError: An option lacks the one that it is about.
    """
    encoded: dict[str, object] = {"if_exists": if_exists} if if_exists else {}
    seconds, until = constraints.get("unique_for"), constraints.get("unique_until")
    most, rate = constraints.get("max_concurrent"), constraints.get("rate_limit")
    if (unique := constraints.get("unique")) is not None:
        encoded["unique"] = _make_key("unique", unique, klass, values)
        encoded |= {"for": seconds} if seconds is not None else {"until": until or "done"}
    elif until or seconds is not None:
        raise ValueError("unique_until and unique_for need unique, which is the key")
    key = constraints.get("concurrency_key")
    if most is not None or rate is not None:
        encoded["key"] = _make_key("concurrency_key", () if key is None else key, klass, values)
        encoded |= {"limit": most} if most is not None else {}
        encoded |= {"rate": rate} if rate is not None else {}
    elif key is not None:
        raise ValueError("concurrency_key needs max_concurrent or rate_limit, which count by it")
    return msgspec.json.encode(encoded)


def key_fields(constraints: ConstraintOptions) -> set[str]:
    """Return the fields of the data that the keys are made of."""
    keys = (constraints.get("unique"), constraints.get("concurrency_key"))
    return {field for key in keys if isinstance(key, tuple) for field in key}


def _make_key(what: str, key: Key, klass: str, values: Values) -> str:
    if isinstance(key, str):
        return key
    if not key:
        return klass
    data = values()
    if missing := [field for field in key if field not in data]:
        raise InvalidData(
            f"{what} of {klass} is made of the field {missing[0]!r}, which the data doesn't have"
        )
    name = f"{klass}:{json_types.encode([data[field] for field in key]).decode()}"
    if len(name.encode()) <= validation.LONGEST and "\x7f" not in name:
        return name
    return "sha256:" + hashlib.sha256(name.encode()).hexdigest()


def _is_fields(key: object) -> bool:
    return isinstance(key, tuple) and all(isinstance(field, str) for field in key)


def _check_whole(what: str, number: int, most: int) -> None:
    if validation.check_number(what, number) % 1 or not 1 <= number <= most:
        raise ValueError(f"{what} must be an integer from 1 to {most:,} (got {number!r})")


def _check_period(what: str, duration: Seconds) -> float:
    if (
        not 0
        < (seconds := validation.check_seconds(what, duration, least=-math.inf))
        <= MAX_SECONDS
    ):
        raise ValueError(
            f"{what} must be more than 0 seconds, and at most {MAX_SECONDS:g} (got {duration!r})"
        )
    return seconds
