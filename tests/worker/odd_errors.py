"""Exceptions that raise when they are formatted, and data that raises when it is shown."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo
from typing import Any, NoReturn

from aioqless import Job, Retry, Snooze, job


class Lookup(Exception):
    """Looks attributes up in its response, as exceptions of some HTTP clients do."""

    def __getattr__(self, name: str) -> object:
        return {"status": 402}[name]


class HiddenCause(Exception):
    __cause__ = property(lambda self: 1 / 0)


class WithoutTruth(Exception):
    def __bool__(self) -> bool:
        raise ValueError("neither true nor false")


class WithoutText(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


class Nameless(type):
    __name__ = property(lambda cls: 1 / 0)


class OfNamelessClass(Exception, metaclass=Nameless):
    pass


class Unclear(Exception):
    __class__ = property(lambda self: 1 / 0)


class NotSplit(ExceptionGroup[Exception]):
    def split(self, _: Any, /) -> NoReturn:
        raise RuntimeError("indivisible")


def odd_syntax_error() -> SyntaxError:
    error = SyntaxError("bad template")
    error.filename, error.lineno, error.offset = "page.html", 1, "seven"  # type: ignore[assignment]
    error.text = "{% if %}"
    return error


def caused_by(cause: BaseException) -> BaseException:
    error = ValueError("clean")
    error.__cause__ = cause
    return error


def while_handling(context: BaseException) -> BaseException:
    error = ValueError("clean")
    error.__context__ = context
    return error


def nested(levels: int) -> BaseException:
    error: Exception = ValueError("the bank is away")
    for _ in range(levels):
        error = ExceptionGroup("again", [error])
    return error


# By name: the error, and the class by which its failure is grouped.
ERRORS: dict[str, tuple[Callable[[], BaseException], str]] = {
    "getattr": (Lookup, "Lookup"),
    "cause": (HiddenCause, "HiddenCause"),
    "bool": (WithoutTruth, "WithoutTruth"),
    "str": (WithoutText, "WithoutText"),
    "metaclass": (OfNamelessClass, "OfNamelessClass"),
    "class": (Unclear, "Unclear"),
    "syntax": (odd_syntax_error, "SyntaxError"),
    "its cause": (lambda: caused_by(Lookup()), "ValueError"),
    "its context": (lambda: while_handling(Lookup()), "ValueError"),
    "a member": (lambda: ExceptionGroup("some", [ValueError(), Lookup()]), "ExceptionGroup"),
    "split": (lambda: NotSplit("some", [ValueError()]), "NotSplit"),
    "deep": (lambda: nested(5_000), "ExceptionGroup"),
}


class Detached:
    """An object that raises when it is shown, as a row of an ORM without its session."""

    def __repr__(self) -> str:
        raise RuntimeError("row is detached from its session")


class NoZone(tzinfo):
    def utcoffset(self, when: datetime | None) -> timedelta:
        raise LookupError("no such zone")

    dst = utcoffset

    def tzname(self, when: datetime | None) -> str:
        return "none"


def deep() -> object:
    value: list[object] = []
    for _ in range(2_000):
        value = [value]
    return value


VALUES: dict[str, Callable[[], object]] = {
    "detached": Detached,
    "deep": deep,
    "zone": lambda: datetime(2026, 1, 1, tzinfo=NoZone()),
    "digits": lambda: 10**5_000,
}


@job(klass="Odd", executor="process", retries=0)
def odd_in_process(job: Job[Any], error: str) -> None:
    raise ERRORS[error][0]()


@job(klass="Unstorable", executor="process", retries=3)
def unstorable_in_process(job: Job[Any], value: str, how: str) -> None:
    job.data["kept"] = VALUES[value]()
    raise Retry(delay=60) if how == "retry" else Snooze(60)
