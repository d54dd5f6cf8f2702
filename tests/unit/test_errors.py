"""Refusals of scripts become exceptions."""

from __future__ import annotations

import pickle
import re
from typing import Any

import pytest

from aioqless import AioqlessError, errors
from aioqless.errors import (
    HasDependents,
    InvalidArgument,
    LockLost,
    NoSuchJob,
    ScriptError,
    WrongState,
    script_error,
)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("NOJOB", NoSuchJob),
        ("LOCKLOST", LockLost),
        ("BADSTATE", WrongState),
        ("BADARG", InvalidArgument),
        ("HELD", HasDependents),
        ("REPEATED", errors.StaleRequest),
        ("NOWORKER", errors.NoSuchWorker),
        ("NAMETAKEN", errors.NameTaken),
        ("NEWCODE", ScriptError),
    ],
)
def test_each_code_has_its_class(code: str, kind: type[ScriptError]) -> None:
    error = script_error("complete", code, {"jid": "a", "why": "so"})
    assert type(error) is kind
    assert (error.command, error.code, error.detail["why"], error.jid) == (
        "complete",
        code,
        "so",
        "a",
    )


@pytest.mark.parametrize(
    ("code", "detail", "text"),
    [
        (
            "NOJOB",
            {"why": "there is no such job", "jid": "a"},
            "complete: there is no such job (jid 'a')",
        ),
        (
            "LOCKLOST",
            {"why": "held by another", "jid": "a", "holder": "w"},
            "complete: held by another (jid 'a', holder 'w')",
        ),
        (
            "BADARG",
            {"argument": "delay", "value": "x", "why": "is not a number"},
            "complete: delay 'x' is not a number",
        ),
        ("BADARG", {"argument": "jid", "why": "is missing"}, "complete: jid is missing"),
        ("STRANGE", {}, "complete: STRANGE"),
    ],
)
def test_error_message_says_what_happened(code: str, detail: dict[str, Any], text: str) -> None:
    assert str(script_error("complete", code, detail)) == text


def test_details_of_a_refusal_are_attributes() -> None:
    lost = script_error("complete", "LOCKLOST", {"holder": "w"})
    wrong = script_error("complete", "BADSTATE", {"state": "failed"})
    assert isinstance(lost, LockLost) and lost.holder == "w" and lost.jid is None
    assert isinstance(wrong, WrongState) and wrong.state == "failed"


def test_class_tree_in_the_docstring_is_correct() -> None:
    drawn: dict[str, str] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        if found := re.match(r"    ([│├└─ ]*)(\w+)", line):
            depth = len(found[1]) // 4
            path = [*path[:depth], found[2]]
            drawn[found[2]] = path[-2] if depth else "Exception"
    classes = {
        name: kind
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, AioqlessError)
    }
    assert drawn == {
        name: kind.__bases__[0].__name__ for name, kind in classes.items()
    }  # a second base is not drawn


def _errors() -> list[Exception]:
    """Return an error of each class, with what its constructor takes."""
    refused = [
        kind("put", "CODE", {"why": "so", "jid": "a"})
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, ScriptError)
    ]
    made = [
        errors.JobFailed("a", "mail-ValueError", "ValueError: no"),
        errors.NotDurable("1 of 2 replicas has it", {"jid": "a"}),
        errors.PutManyError(["a", "b"], {0: refused[0]}, {1: ConnectionError("lost")}, {}),
        errors.MissingExtra("web", ModuleNotFoundError("no", name="starlette")),
        errors.ProcessDied(-9),
    ]
    others = [
        kind("what happened")
        for kind in vars(errors).values()
        if isinstance(kind, type)
        and issubclass(kind, AioqlessError)
        and not issubclass(kind, (ScriptError, *map(type, made)))
    ]
    return [*refused, *made, *others]


@pytest.mark.parametrize("error", _errors(), ids=lambda error: type(error).__name__)
def test_error_survives_pickling(error: Exception) -> None:
    error.add_note("seen on the way")
    found = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(error))))
    assert type(found) is type(error) and str(found) == str(error)
    assert repr(found) == repr(error) and getattr(found, "name", 0) == getattr(error, "name", 0)
    assert {name: repr(value) for name, value in vars(found).items()} == {
        name: repr(value) for name, value in vars(error).items()
    }
