"""What a command accepts: every check raises Refusal("BADARG") before anything was changed."""

import json
import math
import re
from collections.abc import Sequence
from typing import Any, TypeAlias

Number: TypeAlias = float | int | str
"""Numbers may come as text, as they do on the wire; text that isn't a number is refused."""

LONGEST_TIME = 1e11
LONGEST_DELAY = 1e10
STEEPEST_PRIORITY = 1e9
LONGEST_NAME = 512
MOST_WORDS = 1000
RESERVED_ENDINGS = ("-history", "-dependencies", "-dependents")
REFUSALS = ("BADARG", "NOJOB", "BADSTATE", "LOCKLOST", "HELD", "REPEATED")
CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Refusal(Exception):
    """A command that was refused; nothing changed."""

    def __init__(self, code: str, why: str = "") -> None:
        super().__init__(f"{code} {why}".strip())
        self.code = code


def refuse_unless(good: bool, argument: str, value: object) -> None:
    if not good:
        raise Refusal("BADARG", f"{argument} = {value!r}")


def present(argument: str, value: str) -> str:
    """A name of something that may exist: anything but empty."""
    refuse_unless(value != "", argument, value)
    return value


def created(argument: str, value: str) -> str:
    """A name that comes into being: also short and printable."""
    short = len(value.encode("utf-8", "surrogateescape")) <= LONGEST_NAME
    refuse_unless(value != "" and short and not CONTROL.search(value), argument, value)
    return value


def created_jid(value: str) -> str:
    """A new jid, whose keys must not collide with another job's."""
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
    """Seconds since the epoch."""
    return number("now", value, 0, LONGEST_TIME)


def delay(value: Number | None) -> float:
    """Seconds from now on."""
    return 0.0 if value is None else number("delay", value, 0, LONGEST_DELAY)


def interval(value: Number, argument: str = "interval") -> float:
    """Seconds between the instances of a recurring job, or that a reservation lasts."""
    seconds = number(argument, value, 0, LONGEST_DELAY)
    refuse_unless(seconds > 0, argument, value)
    return seconds


def whole(argument: str, value: Number) -> int:
    parsed = number(argument, value, 0, math.inf)
    refuse_unless(parsed.is_integer(), argument, value)
    return int(parsed)


def page(offset: Number | None, count: Number | None, usual: int = 25) -> slice:
    """The part of a listing that was asked for."""
    first = 0 if offset is None else whole("offset", offset)
    return slice(first, first + (usual if count is None else whole("count", count)))


def stored_priority(value: Number) -> float:
    """The priority as Redis holds it: the caller's, with its sign turned."""
    return turned(number("priority", value, -STEEPEST_PRIORITY, STEEPEST_PRIORITY))


def turned(priority: float) -> float:
    return -priority if priority else 0.0


def document(argument: str, value: str) -> str:
    """JSON text of anything but false."""
    try:
        refuse_unless(json.loads(value) is not False, argument, value)
    except ValueError:
        refuse_unless(False, argument, value)
    return value


def json_object(argument: str, value: str) -> dict[str, Any]:
    document(argument, value)
    parsed: Any = json.loads(value)
    refuse_unless(isinstance(parsed, dict), argument, value)
    return dict(parsed)


def json_strings(argument: str, value: str | None) -> list[str]:
    """A JSON list of non-empty strings, each once, in the order of their first mention."""
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
    """A tail of one or more names."""
    refuse_unless(0 < len(values) <= MOST_WORDS, argument, values)
    return [present(argument, value) for value in values]
