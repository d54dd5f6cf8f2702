"""JobFilter: the filter language for jobs of clients, the command line and the dashboard.

state:failed klass:app.mail.* -tag:vip age:<1h items.0.sku:abc
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from difflib import get_close_matches
from typing import Any, Self

import msgspec

from aioqless.client.job.state import JobState

STATES = tuple(state.value for state in JobState)
# The reserved keys, in the order in which they are compared: the cheapest first. A word without a
# key has the key `text`; any other key is a path in the data.
KEYS = (
    "state", "klass", "jid", "text", "tag", "age", "since", "until", "group", "queue", "worker",
    "run",
)  # fmt: skip
DATA = "data."
MAX_CONDITIONS, MAX_VALUES, MAX_DEPTH = 20, 50, 11
MAX_ADDED = 3  # conditions that the dashboard adds to a filter of a user

_VALUE = r'\*?(?:"(?:[^"\\]|\\.)*"|[^\s",*]+)\*?|\*'
_WORD = re.compile(rf'(-?)(?:([^\s":,*]+):)?((?:{_VALUE})(?:,(?:{_VALUE}))*)(?=\s|$)', re.DOTALL)
_ONE_VALUE = re.compile(_VALUE, re.DOTALL)
_UNQUOTED = re.compile(r'[^\s",*\\<>:-][^\s",*\\:]*')
_BARE = re.compile(r"[\w.:<>+-]+")  # a duration or time without quotes
_AGE = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h|d|w)")
_DURATION = re.compile(rf"([<>]){_AGE.pattern}")
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_DURATIONS, _TIMES = ("age", "run"), ("since", "until")


class Text(msgspec.Struct, frozen=True):
    """A value to compare with: a whole text or, with an open end, a part of one."""

    text: str
    open_start: bool = False
    open_end: bool = False

    def __str__(self) -> str:
        body = self.text
        if not _UNQUOTED.fullmatch(body):
            escaped = re.sub(r'(["\\])', r"\\\1", body)
            body = f'"{escaped}"'
        return "*" * self.open_start + body + "*" * self.open_end


# The dashboard calls a state by another name.
_CANONICAL = {("state", Text("blocked")): Text("depends")}


class Condition(msgspec.Struct, frozen=True):
    """A word of a filter: a job must have one of the values or, if negated, none of them."""

    key: str
    values: tuple[Text, ...]
    negated: bool = False

    def __str__(self) -> str:
        key, path = self.key, self.path
        # A word that begins with - is negated.
        if path and not (path.startswith("-") or _is_reserved(path) or _resembles_key(path)):
            key = path
        is_bare = self.key in _DURATIONS + _TIMES and _BARE.fullmatch(self.values[0].text)
        values = ",".join(each.text if is_bare else str(each) for each in self.values)
        return f"{'-' * self.negated}{f'{key}:' * (self.key != 'text')}{values}"

    @property
    def path(self) -> str | None:
        """The path in the data that the condition is about; None for other conditions."""
        return self.key.removeprefix(DATA) if self.key.startswith(DATA) else None


class JobFilter(msgspec.Struct, frozen=True):
    """Conditions that a job must all meet. `str()` writes them as `parse` reads them."""

    conditions: tuple[Condition, ...] = ()

    def __str__(self) -> str:
        return " ".join(map(str, self.conditions))

    @classmethod
    def parse(cls, text: str, most: int = MAX_CONDITIONS) -> Self:
        """Parse a filter of at most `most` words.

        Raises:
            ValueError: A word is malformed; the error says which one, and what is possible.
        """
        conditions: list[Condition] = []
        at = len(text) - len(text.lstrip())
        while at < len(text):
            word = _WORD.match(text, at)
            if word is None or (word[2] is None and word[3][0] != '"' and ":" in word[3]):
                wrong = text[at:].split(maxsplit=1)[0][:80]
                raise ValueError(
                    f"{wrong!r} can't be read: write key:value, with quotes around a value that "
                    'has spaces or one of ",*: as in klass:app.mail or note:"two words"'
                )
            conditions.append(_make_condition(word))
            at = len(text) - len(text[word.end() :].lstrip())
        if len(conditions) > most:
            raise ValueError(f"a filter has at most {most} words (got {len(conditions)})")
        return cls(tuple(conditions))

    def __and__(self, other: JobFilter) -> JobFilter:
        """Return what meets both filters."""
        more = tuple(each for each in other.conditions if each not in self.conditions)
        return JobFilter(self.conditions + more)

    def values(self, key: str) -> list[str]:
        """Return the whole texts of which one is wanted for a key."""
        return [
            value.text
            for each in self.conditions
            for value in each.values
            if each.key == key and not (each.negated or value.open_start or value.open_end)
        ]

    @property
    def paths(self) -> list[str]:
        """The paths in the data that it reads."""
        return [each.path for each in self.conditions if each.path is not None]

    def read_dates(self, now: float) -> tuple[date, date]:
        """Return the first and the last day, in UTC, of the times that it allows."""
        times = [each for each in json.loads(self.encode(now)) if each["key"] == "time"]
        times = [each for each in times if not each["negated"]]
        least = max((each["least"] for each in times if "least" in each), default=0)
        most = min((each["most"] for each in times if "most" in each), default=now)
        return (
            datetime.fromtimestamp(max(0, least), UTC).date(),
            datetime.fromtimestamp(min(now, most), UTC).date(),
        )

    def encode(self, now: float) -> str:
        """Return the argument of the command `find`.

        Args:
            now: Where ages end, in seconds since 1970.
        """
        since = max(
            (_read_time(each, now) for each in self.conditions if each.key == "since"),
            default=-math.inf,
        )
        ordered = sorted(self.conditions, key=lambda each: _rank(each.key))
        return msgspec.json.encode([_encode(each, now, since) for each in ordered]).decode()


def _make_condition(word: re.Match[str]) -> Condition:
    given, key = word[0], word[2] or "text"
    written = _ONE_VALUE.findall(word[3])
    values = tuple(map(_make_text, written))
    if len(values) > MAX_VALUES:
        raise ValueError(f"a word has at most {MAX_VALUES} values (got {len(values)})")
    if not _is_reserved(key):
        if similar := _resembles_key(key):
            raise ValueError(
                f"unknown key {key!r}{similar} For a member of the data write {DATA}{key}:"
            )
        key = DATA + key
    if key.startswith(DATA) and not (all(names := key.split(".")) and len(names) <= MAX_DEPTH):
        raise ValueError(
            f"{key!r} is no path in the data: write up to {MAX_DEPTH - 1} names such as items.0.sku"
        )
    plain = len(values) == 1 and not (values[0].open_start or values[0].open_end)
    if key in ("text", *_DURATIONS, *_TIMES) and not plain:
        raise ValueError(f"{given!r} takes one whole value")
    if key == "text" and not values[0].text:
        raise ValueError(f"{given!r} is empty, and would match all jobs")
    for value in values:
        if check := _CHECKS.get(key):
            check(value)
    if key not in _DURATIONS and any(each.lstrip("*")[:1] in ("<", ">") for each in written):
        raise ValueError(
            f"{given!r}: only age and run are compared with < and >; quote a value that has them"
        )
    return Condition(
        key, tuple(_CANONICAL.get((key, each), each) for each in values), bool(word[1])
    )


def _make_text(value: str) -> Text:
    if value == "*":
        return Text("", open_start=True, open_end=True)
    body = value.removeprefix("*").removesuffix("*")
    text = re.sub(r"\\(.)", r"\1", body[1:-1], flags=re.DOTALL) if body[0] == '"' else body
    return Text(text, value[0] == "*", value[-1] == "*")


def _is_reserved(key: str) -> bool:
    return key in KEYS or key.startswith(DATA)


def _resembles_key(name: str) -> str:
    """Return the end of the message for a name that may be a misspelled key, else nothing."""
    similar = get_close_matches(name, KEYS, 1, 0.8)
    return f"; did you mean {similar[0]!r}?" if similar else ""


def _rank(key: str) -> float:
    """Return how expensive it is to compare."""
    return KEYS.index(key) if key in KEYS else len(KEYS) - 1.5


def _check_state(value: Text) -> None:
    if ("state", value) in _CANONICAL:
        return
    if value.text not in STATES or value.open_start or value.open_end:
        raise ValueError(f"unknown state {value.text!r}: it is one of {', '.join(STATES)}")


def _check_duration(value: Text) -> None:
    if not _DURATION.fullmatch(value.text):
        raise ValueError(
            f"{value.text!r} is no limit of a duration: write < or >, a number, and "
            f"{', '.join(_UNITS)}, as in age:<1h or run:>5s"
        )


def _check_time(value: Text) -> None:
    _read_moment(value.text, 0)


_CHECKS: dict[str, Callable[[Text], None]] = {
    "state": _check_state,
    **dict.fromkeys(_DURATIONS, _check_duration),
    **dict.fromkeys(_TIMES, _check_time),
}


def _read_moment(text: str, now: float) -> float:
    """Read an age, a time of a day (the latest one before now), or a date with a time, in UTC."""
    if age := _AGE.fullmatch(text):
        return now - float(age[1]) * _UNITS[age[2]]
    present = datetime.fromtimestamp(now, UTC)
    try:
        if re.fullmatch(r"\d\d:\d\d(:\d\d)?", text):
            moment = datetime.combine(present, time.fromisoformat(text), UTC)
            return (moment - timedelta(days=moment > present)).timestamp()
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise ValueError(
            f"{text!r} is no time: write 03:00, 2030-01-31, 2030-01-31T03:00 (UTC), or 30m for "
            "30 minutes ago"
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _read_time(condition: Condition, now: float) -> float:
    return _read_moment(condition.values[0].text, now)


def _encode(condition: Condition, now: float, since: float) -> dict[str, Any]:
    """Return a condition as the script reads it; limits of age and time are those of `time`."""
    key, text = condition.key, condition.values[0].text
    encoded: dict[str, Any] = {"key": key, "negated": condition.negated}
    if (duration := _DURATION.fullmatch(text)) and key in _DURATIONS:
        seconds = float(duration[2]) * _UNITS[duration[3]]
        above = duration[1] == ">"
        if key == "run":
            return encoded | {("least" if above else "most"): seconds}
        return encoded | {"key": "time", ("most" if above else "least"): now - seconds}
    if key in _TIMES:
        moment = _read_time(condition, now)
        if key == "until" and moment <= since and text[2:3] == ":":
            moment += 86400  # of the clock: the first such time after `since`
        return encoded | {"key": "time", ("least" if key == "since" else "most"): moment}
    if condition.path is not None:
        encoded |= {"key": "data", "path": condition.path.split(".")}
    values = dict.fromkeys((each.text, each.open_start, each.open_end) for each in condition.values)
    return encoded | {"values": [*values]}
