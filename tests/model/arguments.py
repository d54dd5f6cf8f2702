"""The arguments that a command accepts.

Every check raises Refusal("BADARG") before anything is changed.
"""

import json
import math
import re
from collections.abc import Sequence
from typing import Any, TypeAlias

Number: TypeAlias = float | int | str
"""Numbers may come as text, as they do on the wire; text that isn't a number is refused."""

LONGEST_TIME = 1e11
LONGEST_DELAY = 1e10
STEEPEST_PRIORITY = 100
LONGEST_NAME = 512
MOST_WORDS = 1000
RESERVED_ENDINGS = ("-history", "-dependencies", "-dependents")
REFUSALS = ("BADARG", "NOJOB", "BADSTATE", "LOCKLOST", "HELD", "REPEATED")
CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Refusal(Exception):
    """A command was refused; nothing changed."""

    def __init__(self, code: str, why: str = "") -> None:
        super().__init__(f"{code} {why}".strip())
        self.code = code


def refuse_unless(good: bool, argument: str, value: object) -> None:
    if not good:
        raise Refusal("BADARG", f"{argument} = {value!r}")


def present(argument: str, value: str) -> str:
    """Check a name that may refer to something: any non-empty string."""
    refuse_unless(value != "", argument, value)
    return value


def created(argument: str, value: str) -> str:
    """Check a name for something new: also short and printable."""
    short = len(value.encode("utf-8", "surrogateescape")) <= LONGEST_NAME
    refuse_unless(value != "" and short and not CONTROL.search(value), argument, value)
    return value


def created_jid(value: str) -> str:
    """Check a new jid, whose keys must not collide with those of another job."""
    refuse_unless(not value.endswith(RESERVED_ENDINGS), "jid", value)
    return created("jid", value)


def number(argument: str, value: Number, low: float, high: float) -> float:
    try:
        parsed = float(value)
    except ValueError:
        parsed = math.nan
    refuse_unless(low <= parsed <= high, argument, value)
    return parsed


def time(value: Number) -> float:
    """Check a time: seconds since the epoch."""
    return number("now", value, 0, LONGEST_TIME)


def delay(value: Number | None) -> float:
    """Check a delay: seconds from now."""
    return 0.0 if value is None else number("delay", value, 0, LONGEST_DELAY)


def interval(value: Number, argument: str = "interval") -> float:
    """Check the interval of a recurring job or the duration of a reservation, in seconds."""
    seconds = number(argument, value, 0, LONGEST_DELAY)
    refuse_unless(seconds > 0, argument, value)
    return seconds


def whole(argument: str, value: Number) -> int:
    parsed = number(argument, value, 0, math.inf)
    refuse_unless(parsed.is_integer(), argument, value)
    return int(parsed)


def page(offset: Number | None, count: Number | None, usual: int = 25) -> slice:
    """Return the requested part of a listing."""
    first = 0 if offset is None else whole("offset", offset)
    return slice(first, first + (usual if count is None else whole("count", count)))


def stored_priority(value: Number) -> float:
    """Return the priority as Redis stores it: the caller's, negated."""
    return negated(number("priority", value, -STEEPEST_PRIORITY, STEEPEST_PRIORITY))


def negated(priority: float) -> float:
    return -priority if priority else 0.0


def document(argument: str, value: str) -> str:
    """Check a job's data: anything but false. That it is JSON is up to clients."""
    refuse_unless(value.strip() not in ("", "false"), argument, value)
    return value


def json_object(argument: str, value: str) -> dict[str, Any]:
    document(argument, value)
    parsed: Any = json.loads(value)
    refuse_unless(isinstance(parsed, dict), argument, value)
    return dict(parsed)


def json_strings(argument: str, value: str | None) -> list[str]:
    """Check a JSON list of non-empty strings; duplicates are dropped, the first position counts."""
    if value is None:
        return []
    try:
        parsed: Any = json.loads(value)
    except ValueError:
        parsed = None
    refuse_unless(isinstance(parsed, list) and len(parsed) <= MOST_WORDS, argument, value)
    refuse_unless(all(isinstance(one, str) and one for one in parsed), argument, value)
    return list(dict.fromkeys(parsed))


def json_tags(value: str | None) -> list[str]:
    return [created("tags", tag) for tag in json_strings("tags", value)]


def words(argument: str, values: Sequence[str]) -> list[str]:
    """Check one or more names at the end of the arguments."""
    refuse_unless(0 < len(values) <= MOST_WORDS, argument, values)
    return [present(argument, value) for value in values]
