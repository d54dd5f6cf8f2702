"""Calls of commands: arguments by name, validated before anything is sent."""

from __future__ import annotations

from typing import Any, cast

import pytest

from aioqless.redis.connection import CommandConnection
from aioqless.redis.encoding import decode_json, decode_text
from aioqless.store import Call, ScriptStore
from tests.command_calls import make_call

NO_CONNECTION = cast(CommandConnection, None)


def call(command: str, form: str | None = None, /, **arguments: Any) -> Call:
    return make_call(ScriptStore(NO_CONNECTION), command, form, **arguments)


def test_text_that_was_not_unicode_is_sent_as_the_bytes_it_was() -> None:
    assert call("get", jid=decode_text(b"\xff")).argv == [b"\xff"]


@pytest.mark.parametrize(
    ("command", "arguments", "why"),
    [
        ("get", {}, r"get\(\) missing .* argument: 'jid'"),
        ("get", {"jid": "a", "colour": 1}, r"get\(\) got an unexpected .* argument 'colour'"),
        ("length", {}, r"length\(\) missing .* argument: 'queue'"),
        ("get", {"jid": True}, r"must be a string, a number or .* \(got True\)"),
        ("get", {"jid": None}, r"must be a string, a number or .* \(got None\)"),
        ("length", {"queue": None}, r"must be a string, a number or .* \(got None\)"),
        ("get", {"jid": object()}, "must be a string, a number or a list of strings"),
        ("heartbeat_many", {"worker": "w"}, r"heartbeat_many\(\) missing .* argument: 'batch'"),
        (
            "heartbeat_many",
            {"worker": "w", "batch": [{"jib": "a"}]},
            "heartbeat_many: unknown argument jib in the batch",
        ),
        (
            "heartbeat_many",
            {"worker": "w", "batch": [{"fence": 1}]},
            "heartbeat_many: the argument jid is missing in the batch",
        ),
    ],
)
def test_wrong_or_missing_argument_is_a_type_error(
    command: str, arguments: dict[str, Any], why: str
) -> None:
    with pytest.raises(TypeError, match=why):
        call(command, **arguments)


@pytest.mark.parametrize("namespace", ["", "a:b", "a\nb", ":"])
def test_namespace_with_a_separator_is_refused(namespace: str) -> None:
    with pytest.raises(ValueError, match=r"namespace .* must be a printable name without ':'"):
        ScriptStore(NO_CONNECTION, namespace)


# Replies


def test_json_of_others_with_invalid_utf8_is_read() -> None:
    assert decode_json(b'{"data":"\xff","expires":1e999}') == {
        "data": "\udcff",
        "expires": float("inf"),
    }
