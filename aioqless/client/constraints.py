"""Uniqueness, limits and tenant of a job: merged and encoded."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from aioqless import validation
from aioqless.client import json_types
from aioqless.client.put_options import CheckedOptions, Key
from aioqless.errors import InvalidData

_PLAIN = re.compile(r"[\w.@-]+")  # what needs no quotes in the name of a tenant
Values: TypeAlias = Callable[[], Mapping[str, object]]


def merge_options(declared: CheckedOptions, own: CheckedOptions) -> CheckedOptions:
    """Return the options of a job: its own override those of its handler."""
    if "unique_until" in own or "unique_for" in own:
        until = ("unique_until", "unique_for")
        declared = {name: value for name, value in declared.items() if name not in until}
    return {**declared, **own}


def encode_constraints(options: CheckedOptions, klass: str, values: Values) -> bytes:
    """Encode the constraints of one job as the scripts take them.

    Args:
        options: The checked options of the job; others are not looked at.
        klass: Klass of the job.
        values: Returns the job's data, of which keys are made.

    Raises:
        InvalidData: The data lacks a field that a key is made of.
        ValueError: An option lacks the one that it is about, or two exclude each other.
    """
    if_exists = options.get("if_exists")
    encoded: dict[str, object] = {"if_exists": if_exists} if if_exists else {}
    seconds, until = options.get("unique_for"), options.get("unique_until")
    most, rate = options.get("max_concurrency"), options.get("rate_limit")
    if until and seconds is not None:
        raise ValueError("unique_until and unique_for are mutually exclusive")
    if (unique := options.get("unique")) is not None:
        encoded["unique"] = _make_key("unique", unique, klass, values)
        encoded |= {"for": seconds} if seconds is not None else {"until": until or "done"}
    elif until or seconds is not None:
        raise ValueError("unique_until and unique_for need unique, which is the key")
    key = options.get("limit_key")
    if most is not None or rate is not None:
        encoded["key"] = _make_key("limit_key", () if key is None else key, klass, values)
        encoded |= {"limit": most} if most is not None else {}
        encoded |= {"rate": rate} if rate is not None else {}
    elif key is not None:
        raise ValueError("limit_key needs max_concurrency or rate_limit, which count by it")
    tenant, weight = options.get("fair_by"), options.get("fair_weight")
    if tenant is not None:
        encoded["fair"] = _name_tenant(tenant, klass, values)
        encoded |= {"weight": weight} if weight is not None else {}
    elif weight is not None:
        raise ValueError("fair_weight needs fair_by, which names the tenant")
    return msgspec.json.encode(encoded)


def key_fields(options: CheckedOptions) -> set[str]:
    """Return the fields of the data that the keys are made of."""
    keys = (options.get("unique"), options.get("limit_key"), options.get("fair_by"))
    return {field for key in keys if isinstance(key, tuple) for field in key}


def _make_key(what: str, key: Key | tuple[str, ...], klass: str, values: Values) -> str:
    if isinstance(key, Key):
        return str.__str__(key)  # msgspec takes no subclasses
    if not key:
        return klass
    fields = _read_fields(what, key, klass, values)
    return _shorten(f"{klass}:{json_types.encode(fields).decode()}")


def _name_tenant(key: Key | tuple[str, ...], klass: str, values: Values) -> str:
    """Return the tenant as people read it, such as `customer=7`."""
    if isinstance(key, Key):
        return str.__str__(key)
    if not key:
        return klass
    fields = _read_fields("fair_by", key, klass, values)
    return _shorten(
        ",".join(f"{name}={_show(value)}" for name, value in zip(key, fields, strict=True))
    )


def _show(value: object) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        return value
    return json_types.encode(value).decode()


def _read_fields(what: str, key: tuple[str, ...], klass: str, values: Values) -> list[object]:
    data = values()
    if missing := [field for field in key if field not in data]:
        raise InvalidData(
            f"{what} of {klass} is made of the field {missing[0]!r}, which the data doesn't have"
        )
    return [data[field] for field in key]


def _shorten(name: str) -> str:
    if len(name.encode()) <= validation.LONGEST and "\x7f" not in name:
        return name
    return "sha256:" + hashlib.sha256(name.encode()).hexdigest()
