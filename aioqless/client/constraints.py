"""Uniqueness, limits, tenant and bulk of a job: merged and encoded, and made of other data."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from aioqless import validation
from aioqless.client import json_types
from aioqless.client.put_options import CheckedOptions, Fair, Limit, Unique
from aioqless.errors import InvalidData

# What the puts of one job can't share, or what says when it runs.
_NOT_WITH_DEBOUNCE = ("jid", "delay", "at", "depends", "if_dependency_fails", "if_exists")
_PLAIN = re.compile(r"[\w.@-]+")  # what needs no quotes in the name of a tenant
# By their names in what is stored, the options that have a key.
_KEYS = {"unique": "unique", "fair": "fair", "bulk": "together_by"}
_EXACT = 1 << 53  # floats beyond have no fraction, and other digits than integers
Values: TypeAlias = Callable[[], Mapping[str, object]]


def encode_constraints(
    options: CheckedOptions,
    klass: str,
    values: Values,
    links: Mapping[str, object] | None = None,
) -> bytes:
    """Encode the constraints of one job as the scripts take them.

    Args:
        options: The checked options of the job; others are not looked at.
        klass: Klass of the job.
        values: Returns the job's data, of which keys are made.
        links: The results that the job takes, or that are taken from it.

    Raises:
        InvalidData: The data lacks a field that a key or a cost is made of, or the cost is wrong.
        ValueError: Two options exclude each other.
    """
    if_exists = options.get("if_exists")
    encoded = {**(links or {}), **({"if_exists": if_exists} if if_exists else {})}
    unique: Unique | None = options.get("unique")
    if unique is not None:
        if unique.debounce is not None:
            _check_debounce(options)
        encoded |= _encode_unique(unique, klass, values)
    if limits := options.get("limits", ()):
        encoded["limits"] = [encode_limit(limit, klass, values) for limit in limits]
    fair: Fair | None = options.get("fair")
    if fair is not None:
        encoded["fair"] = _make_key("fair", fair.by, klass, values, for_people=True)
        encoded |= {"weight": fair.weight} if fair.weight is not None else {}
    if (size := options.get("size")) is not None:
        bulk = _make_key("together_by", options.get("together_by", ()), klass, values)
        encoded |= {"bulk": bulk, "size": size, "within": options["within"]}
    if fields := _name_fields(options):
        encoded["fields"] = fields
    return msgspec.json.encode(encoded)


def _encode_unique(unique: Unique, klass: str, values: Values) -> dict[str, object]:
    durations = {
        "for": unique.ttl,
        "debounce": unique.debounce,
        "debounce_max": unique.debounce_max,
    }
    return {
        "unique": _make_key("unique", unique.key, klass, values),
        **({"until": unique.until or "done"} if unique.ttl is None else {}),
        **{name: each for name, each in durations.items() if each is not None},
    }


def _read_keys(options: CheckedOptions) -> dict[str, object]:
    """Return the keys in checked options, those of limits not, by their names in what is stored."""
    unique, fair = options.get("unique"), options.get("fair")
    return {
        "unique": unique and unique.key,
        "fair": fair and fair.by,
        "bulk": options.get("together_by"),
    }


def _name_fields(options: CheckedOptions) -> dict[str, object]:
    """Return the fields of the data of which keys and costs are made, as they are stored."""
    numbered = [(str(number), limit) for number, limit in enumerate(options.get("limits", ()), 1)]
    fields = {
        **_read_keys(options),
        "limits": {number: limit.key for number, limit in numbered if _is_made(limit.key)},
        "costs": {number: limit.cost for number, limit in numbered if isinstance(limit.cost, str)},
    }
    return {
        name: named for name, named in fields.items() if isinstance(named, tuple | dict) and named
    }


def _is_made(key: object) -> bool:
    return isinstance(key, tuple) and key != ()


def encode_data_keys(stored: str, klass: str, before: Values, after: Values) -> bytes | None:
    """Encode what the constraints of a job take from its data, as the scripts take it.

    Args:
        stored: The constraints, as the scripts store them.
        klass: Klass of the job.
        before: Returns data of the job by field. What it lacks has a default that is unknown here:
            without it in the other data too, the key stays.
        after: Returns the data by field.

    Returns:
        The keys and costs; None if none is made of data.

    Raises:
        InvalidData: The data lacks a field that a key or a cost is made of, the cost is wrong, or
            two limits would have one key.
    """
    if '"fields":' not in stored:
        return None
    own = json.loads(stored)
    fields, old, new = own.get("fields") or {}, before(), after()

    def is_known(names: Sequence[str]) -> bool:
        return bool(names) and any(name in old or name in new for name in names)

    made: dict[str, object] = {
        name: _make_key(option, tuple(names), klass, lambda: new, for_people=name == "fair")
        for name, option in _KEYS.items()
        if name in own and is_known(names := fields.get(name, ()))
    }
    limits = {str(number): limit for number, limit in enumerate(own.get("limits") or [], 1)}
    keys = {
        number: _make_key("limit", tuple(names), klass, lambda: new)
        for number, names in (fields.get("limits") or {}).items()
        if number in limits and is_known(names)
    }
    all_keys = [keys.get(number, limit["key"]) for number, limit in limits.items()]
    if len({*all_keys}) < len(all_keys):
        raise InvalidData(f"two limits of {klass} would have the same key, {all_keys!r}")
    costs = {
        number: _read_cost(name, Limit((), rate=tuple(limits[number]["rate"])), klass, new)
        for number, name in (fields.get("costs") or {}).items()
        if number in limits and is_known([name])
    }
    made |= {name: each for name, each in (("limits", keys), ("costs", costs)) if each}
    return msgspec.json.encode(made) if made else None


def with_data_keys(stored: str, data_keys: bytes | None) -> dict[str, Any]:
    """Return constraints, as the scripts store them, with what they take from other data.

    Args:
        stored: The constraints.
        data_keys: The keys and costs, of `encode_data_keys`.
    """
    own, made = json.loads(stored), json.loads(data_keys or b"{}")
    for number, key in made.pop("limits", {}).items():
        own["limits"][int(number) - 1]["key"] = key
    for number, cost in made.pop("costs", {}).items():
        own["limits"][int(number) - 1]["cost"] = cost
    return {**own, **made}


def _check_debounce(options: CheckedOptions) -> None:
    if wrong := [name for name in _NOT_WITH_DEBOUNCE if name in options]:
        raise ValueError(
            f"debounce and {wrong[0]} are mutually exclusive; steps and recurring jobs have a jid, "
            "too"
        )


def key_fields(options: CheckedOptions) -> set[str]:
    """Return the fields of the data that the keys and costs are made of."""
    limits: Sequence[Limit] = options.get("limits", ())
    keys = [*_read_keys(options).values(), *(limit.key for limit in limits)]
    costs = {limit.cost for limit in limits if isinstance(limit.cost, str)}
    return {field for key in keys if isinstance(key, tuple) for field in key} | costs


def encode_limit(limit: Limit, klass: str, values: Values) -> dict[str, object]:
    """Return a limit of one job as the scripts take it.

    Raises:
        InvalidData: The data lacks a field that the key or the cost is made of, or has a cost that
            is no number or more than the limit.
    """
    encoded: dict[str, object] = {"key": name_limit(limit, klass, values)}
    if limit.max_concurrency is not None:
        encoded["limit"] = limit.max_concurrency
    if limit.rate is not None:
        encoded["rate"] = limit.rate
    if isinstance(limit.cost, str):
        encoded["cost"] = _read_cost(limit.cost, limit, klass, values())
    elif limit.cost is not None:
        encoded["cost"] = limit.cost
    return encoded


def _read_cost(name: str, limit: Limit, klass: str, values: Mapping[str, object]) -> float:
    (cost,) = _read_fields("cost", (name,), klass, lambda: values)
    try:
        return limit.check_cost(cost)
    except (TypeError, ValueError) as wrong:
        raise InvalidData(f"{name} of {klass}: {wrong}") from None


def name_limit(limit: Limit, klass: str, values: Values) -> str:
    """Return the key of a limit of one job, as Redis has it.

    Raises:
        InvalidData: The data lacks a field that the key is made of.
    """
    return _make_key("limit", limit.key, klass, values)


def _make_key(
    what: str, key: str | tuple[str, ...], klass: str, values: Values, *, for_people: bool = False
) -> str:
    if isinstance(key, str):
        return str.__str__(key)  # msgspec takes no subclasses
    if not key:
        return klass
    fields = _read_fields(what, key, klass, values)
    if for_people:  # such as `customer=7`
        pairs = zip(key, fields, strict=True)
        return _shorten(",".join(f"{name}={_show(value)}" for name, value in pairs))
    return _shorten(f"{klass}:{_encode_ordered(fields)}")


def _show(value: object) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        return value
    return _encode_ordered(value)


def _encode_ordered(value: object) -> str:
    """Return a value as JSON that is the same for equal values: of data, and of what it is read as.

    The keys of objects are ordered, and integers have no fraction.
    """
    text = json_types.encode(value).decode()
    if "{" not in text and ".0" not in text:
        return text
    ordered = json.loads(text, parse_float=_parse_number)
    return json.dumps(ordered, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _parse_number(text: str) -> float:
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < _EXACT else number


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
