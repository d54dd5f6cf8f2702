"""The contents of a real Redis' namespace, in the form of the model."""

import json
import math
import re
from typing import Any

from redis import Redis

# One read of all keys: a list of [key, type, contents].
DUMP = """
local read = {
    hash = function(key) return redis.call('HGETALL', key) end,
    zset = function(key) return redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end,
    set = function(key) return redis.call('SMEMBERS', key) end,
    list = function(key) return redis.call('LRANGE', key, 0, -1) end,
    string = function(key) return redis.call('GET', key) end,
}
local found = {}
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
    local kind = redis.call('TYPE', key).ok
    found[#found + 1] = {key, kind, read[kind](key)}
end
return found
"""

NUMBERS = {
    "j": {
        "priority",
        "expires",
        "retries",
        "remaining",
        "time",
        "scheduled",
        "grace",
        "x-put",
        "x-fence",
        "x-lost",
    },
    "r": {
        "priority",
        "interval",
        "retries",
        "backlog",
        "count",
        "x-coalesce",
        "x-first",
        "x-uncounted",
    },
}
JSON = {"tags", "failure", "x-after", "x-cause"}


def keyspace(redis: Redis, name: str) -> dict[str, Any]:
    """Read every key of the namespace.

    Left out are keys that the model does not have: stored replies, how far statistics are pruned,
    and reviews of what other clients have done: here they find nothing.
    """
    rows: list[list[Any]] = redis.eval(DUMP, 0, f"{name}:*")
    found = {
        key: _read(key.removeprefix(f"{name}:"), kind, contents)
        for key, kind, contents in rows
        if not key.startswith(
            (
                f"{name}:x:request:",
                f"{name}:x:old-statistics",
                f"{name}:x:on-failure",
            )
        )
        and not (key == f"{name}:x:agenda" and _are_reviews(contents))
    }
    for key in [key for key in found if key.startswith(f"{name}:j:")]:
        if isinstance(found[key], dict) and "jid" in found[key]:  # peers read missing ones so
            found[key] = {"worker": "", "expires": 0.0, **found[key]}
        if isinstance(found[key], dict) and (puts := _puts(found[key].pop("history", "[]"))):
            found[f"{key}-history"] = puts + found.get(f"{key}-history", [])
    return found


def _puts(stages: str) -> list[list[Any]]:
    """Return the events of a hash's history, in which there are only puts."""
    events = []
    for stage in json.loads(stages):
        fraction, whole = math.modf(stage.pop("put"))
        more = [round(fraction, 6)] if fraction >= 5e-7 else []
        events.append([int(whole), "put", stage, *more])
    return events


def _are_reviews(agenda: list[str]) -> bool:
    return all(text.startswith('{"kind":"review ') for text in agenda[::2])


def _read(key: str, kind: str, contents: Any) -> Any:
    match kind:
        case "zset":
            return {member: float(score) for member, score in _pairs(contents)}
        case "set":
            return set(contents)
        case "list" if key.startswith("j:"):
            return [json.loads(event) for event in contents]
        case "list":
            return list(contents)
        case "string":
            return float(contents)
        case "hash":
            return {field: _field(key, field, text) for field, text in _pairs(contents)}
    raise AssertionError(f"{key} is a {kind}, which no key of a namespace is")


def _pairs(flat: list[str]) -> list[tuple[str, str]]:
    return list(zip(flat[::2], flat[1::2], strict=True))


def _field(key: str, field: str, text: str) -> Any:
    family = key.partition(":")[0]
    if family == "s" or (family in NUMBERS and field in NUMBERS[family] and text != ""):
        if field == "time":
            assert re.fullmatch(r"-?\d+\.\d{6}", text), (
                f"{key} has a time of {text}, not one with 6 decimals"
            )
        return float(text)
    if family in NUMBERS and field in JSON:
        return json.loads(text)
    return text


def differences(expected: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """Return one line for each key or hash field in which two keyspaces differ.

    Statistics may be rounded otherwise: values are added in any order. A job's time is stored with
    six decimals, also that of a job of a batch, which is put a microsecond after the previous one.
    """
    lines = []
    for key in sorted(expected.keys() | found.keys()):
        ours, theirs = expected.get(key), found.get(key)
        if ours == theirs or (key in ("mean", "vk") and _are_close(ours, theirs)):
            continue
        if key == "time" and isinstance(ours, float) and round(ours, 6) == theirs:
            continue
        if isinstance(ours, dict) and isinstance(theirs, dict):
            lines += [f"{key} {line}" for line in differences(ours, theirs)]
        else:
            lines.append(f"{key}: expected {ours!r}, found {theirs!r}")
    return lines


def _are_close(ours: Any, theirs: Any) -> bool:
    both = isinstance(ours, float) and isinstance(theirs, float)
    return both and math.isclose(ours, theirs, rel_tol=1e-12)
