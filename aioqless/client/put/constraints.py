"""On what terms a job is put and run: what it is alone in, how many of its kind run at once, and
how often one starts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeAlias, TypedDict

import msgspec

from aioqless import validation
from aioqless.errors import InvalidData
from aioqless.lua import constant

Key: TypeAlias = (
    str | tuple[str, ...]
)  # as it is, or drawn from these fields of the data, for each klass apart
Values: TypeAlias = Callable[[], Mapping[str, Any]]

MOST_AT_ONCE = constant("MAX_CONCURRENT")
MOST_STARTS = constant("MAX_RATE_STARTS")


class TermOptions(TypedDict, total=False):
    """Options of put and of `@job`. Times are in seconds."""

    unique: Key | None  # only one job has this key; put leaves that one alone, and returns its jid
    unique_until: (
        Literal["started", "done"] | None
    )  # which it has until it runs, or until it has ended, the default
    unique_for: float | None  # or for so long from now, whatever becomes of it
    concurrency_key: (
        Key | None
    )  # what max_concurrent and rate_limit count; by default all jobs of the klass
    max_concurrent: int | None  # how many of them run at once
    rate_limit: tuple[int, float] | None  # how many of them start within so many seconds


@dataclass(frozen=True)
class Terms:
    """What is said of a job, by its handler or by who puts it; what is None isn't said."""

    unique: Key | None = None
    unique_until: Literal["started", "done"] | None = None
    unique_for: float | None = None
    concurrency_key: Key | None = None
    max_concurrent: int | None = None
    rate_limit: tuple[int, float] | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Terms | None:
        """The terms among the options; None for none. Raises TypeError and ValueError, naming what
        is wrong."""
        said = {name: options[name] for name in _NAMES if options.get(name) is not None}
        return cls(**said).checked() if said else None

    def checked(self) -> Terms:
        """These, if they can be. Raises TypeError and ValueError."""
        for what, key in (("unique", self.unique), ("concurrency_key", self.concurrency_key)):
            if isinstance(key, str):
                validation.check_name(what, key)
            elif key is not None and not (
                isinstance(key, tuple) and all(isinstance(field, str) for field in key)
            ):
                raise TypeError(
                    f"{what} must be a text, or a tuple of the names of fields of the data, not {key!r}"
                )
        if self.unique_until not in (None, "started", "done"):
            raise ValueError(f"unique_until must be 'started' or 'done', not {self.unique_until!r}")
        if self.unique_until and self.unique_for is not None:
            raise ValueError(
                "unique_until and unique_for exclude each other: a key is had by a job's state or for a time"
            )
        if self.unique_for is not None:
            _checked_seconds("unique_for", self.unique_for)
        if self.max_concurrent is not None:
            _checked_whole("max_concurrent", self.max_concurrent, MOST_AT_ONCE)
        if self.rate_limit is not None:
            if not isinstance(self.rate_limit, tuple) or len(self.rate_limit) != 2:
                raise TypeError(
                    f"rate_limit must be a tuple of how many and within how many seconds, as (10, 60), not {self.rate_limit!r}"
                )
            _checked_whole("rate_limit", self.rate_limit[0], MOST_STARTS)
            _checked_seconds("rate_limit's period", self.rate_limit[1])
        return self

    def over(self, others: Terms | None) -> Terms:
        """These, and where they say nothing, the others."""
        if others is None:
            return self
        said = {name: getattr(self, name) for name in _NAMES if getattr(self, name) is not None}
        if self.unique_until or self.unique_for is not None:
            others = replace(others, unique_until=None, unique_for=None)
        return replace(others, **said)

    def drawn(self, klass: str, values: Values, if_exists: str | None = None) -> bytes:
        """What the scripts are told of a job with these data. Raises InvalidData where they lack a
        field that a key is drawn from, and ValueError for terms that go with others that are
        missing."""
        told: dict[str, Any] = {"exists": if_exists} if if_exists else {}
        if self.unique is not None:
            told["unique"] = _drawn("unique", self.unique, klass, values)
            told |= (
                {"for": self.unique_for}
                if self.unique_for is not None
                else {"until": self.unique_until or "done"}
            )
        elif self.unique_until or self.unique_for is not None:
            raise ValueError(
                "unique_until and unique_for say for how long a key is had: say which, by unique"
            )
        if self.max_concurrent is not None or self.rate_limit is not None:
            told["key"] = _drawn(
                "concurrency_key",
                () if self.concurrency_key is None else self.concurrency_key,
                klass,
                values,
            )
            told |= {
                name: value
                for name, value in (("limit", self.max_concurrent), ("rate", self.rate_limit))
                if value is not None
            }
        elif self.concurrency_key is not None:
            raise ValueError(
                "concurrency_key says what is limited: say how, by max_concurrent or rate_limit"
            )
        return msgspec.json.encode(told)

    @property
    def fields(self) -> set[str]:
        """The fields of the data that keys are drawn from."""
        return {
            field
            for key in (self.unique, self.concurrency_key)
            if isinstance(key, tuple)
            for field in key
        }


_NAMES = tuple(field.name for field in fields(Terms))
NOTHING = (None,) * len(_NAMES)


def _drawn(what: str, key: Key, klass: str, values: Values) -> str:
    if isinstance(key, str):
        return key
    if not key:
        return klass
    data = values()
    if missing := [field for field in key if field not in data]:
        raise InvalidData(
            f"{what} of {klass} is drawn from {missing[0]!r}, which the data don't have"
        )
    name = f"{klass}:{msgspec.json.encode([data[field] for field in key]).decode()}"
    if len(name.encode()) <= validation.LONGEST and "\x7f" not in name:
        return name
    return "sha256:" + hashlib.sha256(name.encode()).hexdigest()


def _checked_whole(what: str, number: int, most: int) -> None:
    if validation.check_number(what, number) % 1 or not 1 <= number <= most:
        raise ValueError(f"{what} must be a whole number from 1 to {most:,}, not {number!r}")


def _checked_seconds(what: str, seconds: float) -> None:
    if not 0 < validation.check_number(what, seconds) <= 1e10:
        raise ValueError(
            f"{what} must be more than 0 seconds, and no more than 1e10, not {seconds!r}"
        )
