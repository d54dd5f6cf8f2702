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


def argv(command: str, form: str | None = None, /, **arguments: Any) -> list[str]:
    return [each.decode() for each in call(command, form, **arguments).argv]


def test_arguments_are_sent_in_the_order_of_the_header() -> None:
    assert argv("heartbeat", worker="w", jid="a") == ["a", "w", "", ""]
    assert argv("put", delay=1.5, klass="K", queue="q", data="{}", jid="a", now=7) == [
        "a",
        "K",
        "{}",
        "7",
        "1.5",
    ]


def test_queues_are_sent_as_keys_of_the_namespace() -> None:
    assert call("length", queue="mäil").keys == ["ql:q:mäil".encode()]
    assert call("pause", queues=["a", "b"]).keys == [b"ql:q:a", b"ql:q:b"]
    assert call("get", jid="a").keys == [b"ql"]


def test_only_given_options_are_sent_by_name() -> None:
    job = {"queue": "q", "jid": "a", "klass": "K", "data": "{}"}
    sent = argv("put", **job, delay=0, priority=-1, tags=["x"], retries=None)
    assert sent == ["a", "K", "{}", "", "0", "priority", "-1", "tags", '["x"]']


def test_tail_is_ended_by_an_empty_argument() -> None:
    assert argv("cancel", jids=["a", "b"]) == ["a", "b", ""]
    assert argv("multiget") == [""]


def test_request_id_is_sent_last() -> None:
    cancel = call("cancel", jids=["a"], request="line:1")
    assert cancel.words(cancel.request) == [1, b"ql", b"a", b"", b"request", b"line:1"]
    assert cancel.words(None) == [1, b"ql", b"a", b""]


def test_form_is_sent_as_a_word() -> None:
    assert argv("tag", "get", tag="x", count=3) == ["get", "x", "", "3"]
    assert argv("track", "list") == ["list"]


def test_literal_is_filled_in() -> None:
    values = {"queue": "q", "jid": "a", "klass": "K", "data": "1", "interval": 60, "offset": 0}
    assert argv("recur", "on", **values) == ["on", "q", "a", "K", "1", "", "interval", "60", "0"]


def test_batch_is_counted_and_flattened() -> None:
    batch = [{"jid": "a", "fence": 1}, {"jid": "b", "fence": None}]
    assert argv("heartbeat_many", worker="w", batch=batch) == ["w", "", "2", "a", "1", "b", ""]


def test_text_that_was_not_unicode_is_sent_as_the_bytes_it_was() -> None:
    assert call("get", jid=decode_text(b"\xff")).argv == [b"\xff"]


def test_time_is_that_of_the_clock_unless_given() -> None:
    store = ScriptStore(NO_CONNECTION, clock=lambda: 7.5)
    assert store.pop(queue="q", worker="w", count=1).argv == [b"w", b"1", b"7.5"]
    assert store.pop(queue="q", worker="w", count=1, now=0).argv == [b"w", b"1", b"0"]


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


@pytest.mark.parametrize(
    ("command", "reply", "value"),
    [
        ("get", b'{"a":[]}', {"a": []}),
        ("get", None, None),
        ("length", b"7", 7),
        ("length", 7, 7),
        ("heartbeat", b"7.25", 7.25),
        ("heartbeat", b"1e999", float("inf")),
        ("put", b"jid\xff", "jid\udcff"),
        ("jobs", [b"a", b"b"], ["a", "b"]),
        ("pause", None, None),
    ],
)
def test_reply_is_read_as_the_header_says(command: str, reply: Any, value: Any) -> None:
    arguments: dict[str, dict[str, Any]] = {
        "get": {"jid": "a"},
        "length": {"queue": "q"},
        "heartbeat": {"jid": "a", "worker": "w"},
        "put": {"queue": "q", "jid": "a", "klass": "K", "data": "1", "delay": 0},
        "jobs": {"state": "complete"},
        "pause": {"queues": ["q"]},
    }
    assert call(command, **arguments[command]).read(reply) == value


def test_json_of_others_with_invalid_utf8_is_read() -> None:
    assert decode_json(b'{"data":"\xff","expires":1e999}') == {
        "data": "\udcff",
        "expires": float("inf"),
    }
