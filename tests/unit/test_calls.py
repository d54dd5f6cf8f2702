"""Commands are called by the names of their arguments; what is wrong with them is told before
anything is sent."""

from __future__ import annotations

from typing import Any, cast

import pytest

from aioqless.redis.connection import Connection
from aioqless.redis.encoding import decode_json, decode_text
from aioqless.store import ScriptStore
from aioqless.store.invocation import Invocation, lay_out


def laid_out(command: str, word: str | None = None, **arguments: Any) -> Invocation:
    return lay_out("ql", command, word, arguments)


def argv(command: str, word: str | None = None, **arguments: Any) -> list[str]:
    return [
        each.decode() if isinstance(each, bytes) else str(each)
        for each in laid_out(command, word, **arguments).argv
    ]


def test_arguments_come_in_the_order_of_the_header() -> None:
    assert argv("heartbeat", worker="w", jid="a") == ["a", "w", "", ""]
    assert argv("put", delay=1.5, klass="K", queue="q", data="{}", jid="a", now=7) == [
        "a",
        "K",
        "{}",
        "7",
        "1.5",
    ]


def test_the_queue_travels_as_a_key_of_the_namespace() -> None:
    assert laid_out("length", queue="mäil").keys == ("ql:q:mäil".encode(),)
    assert laid_out("pause", queues=["a", "b"]).keys == (b"ql:q:a", b"ql:q:b")
    assert laid_out("get", jid="a").keys == ("ql",)


def test_options_follow_by_name_and_only_where_they_are_given() -> None:
    assert argv("put", queue="q", jid="a", klass="K", data="{}", delay=0, priority=-1, tags=["x"],
        retries=None) == [
        "a", "K", "{}", "", "0", "priority", "-1", "tags", '["x"]',
    ]  # fmt: skip


def test_a_tail_is_ended_where_options_follow() -> None:
    assert argv("cancel", jids=["a", "b"]) == ["a", "b"]
    assert argv("cancel", jids=["a", "b"], request="line:1") == ["a", "b", "", "request", "line:1"]


def test_a_word_comes_first_and_may_have_a_default() -> None:
    assert argv("tag", "get", tag="x", count=3) == ["get", "x", "", "3"]
    assert argv("track") == ["list"]


def test_a_literal_is_filled_in() -> None:
    values = {"queue": "q", "jid": "a", "klass": "K", "data": "1", "interval": 60, "offset": 0}
    assert argv("recur", "on", **values) == ["on", "q", "a", "K", "1", "", "interval", "60", "0"]


def test_a_batch_is_counted_and_flattened() -> None:
    batch = [{"jid": "a", "fence": 1}, {"jid": "b", "fence": None}]
    assert argv("heartbeat_many", worker="w", batch=batch) == ["w", "", "2", "a", "1", "b", ""]


def test_texts_that_are_not_unicode_go_back_as_the_bytes_they_were() -> None:
    assert laid_out("get", jid=decode_text(b"\xff")).argv == (b"\xff",)


@pytest.mark.parametrize(
    ("command", "word", "arguments", "why"),
    [
        ("get", None, {}, "get: the argument jid is missing"),
        ("get", None, {"jid": "a", "colour": 1}, "get: unknown argument colour"),
        ("length", None, {}, "length: the argument queue is missing"),
        ("get", "all", {"jid": "a"}, "get: takes no word such as 'all'"),
        ("tag", None, {}, "tag: the word must be one of add, remove, get, top, not None"),
        ("tag", "paint", {}, "tag: the word must be one of add, remove, get, top, not 'paint'"),
        ("get", None, {"jid": True}, "True is neither a text nor a number"),
        ("get", None, {"jid": object()}, "is neither a text nor a number nor a list of texts"),
        ("heartbeat_many", None, {"worker": "w"}, "heartbeat_many: the argument batch is missing"),
        (
            "heartbeat_many",
            None,
            {"worker": "w", "batch": [{"jib": "a"}]},
            "heartbeat_many: unknown argument jib in the batch",
        ),
        (
            "heartbeat_many",
            None,
            {"worker": "w", "batch": [{"fence": 1}]},
            "heartbeat_many: the argument jid is missing in the batch",
        ),
    ],
)
def test_a_wrong_or_missing_name_is_told(
    command: str, word: str | None, arguments: dict[str, Any], why: str
) -> None:
    with pytest.raises(TypeError, match=why):
        laid_out(command, word, **arguments)


@pytest.mark.parametrize("namespace", ["", "a:b", "a\nb", ":"])
def test_a_namespace_that_would_not_keep_apart_is_refused(namespace: str) -> None:
    with pytest.raises(ValueError, match=r"namespace .* must be a printable name without ':'"):
        ScriptStore(cast(Connection, None), namespace)


# Replies


@pytest.mark.parametrize(
    ("command", "reply", "value"),
    [
        ("get", b'{"a":[]}', {"a": []}),
        ("get", None, None),
        ("length", b"7", 7),
        ("heartbeat", b"7.25", 7.25),
        ("heartbeat", b"1e999", float("inf")),
        ("put", b"jid\xff", "jid\udcff"),
        ("jobs", [b"a", b"b"], ["a", "b"]),
        ("pause", None, None),
    ],
)
def test_replies_are_read_as_the_header_says(command: str, reply: Any, value: Any) -> None:
    arguments: dict[str, dict[str, Any]] = {
        "get": {"jid": "a"},
        "length": {"queue": "q"},
        "heartbeat": {"jid": "a", "worker": "w"},
        "put": {"queue": "q", "jid": "a", "klass": "K", "data": "1", "delay": 0},
        "jobs": {"state": "complete"},
        "pause": {"queues": ["q"]},
    }
    assert laid_out(command, **arguments[command]).read(reply) == value


def test_a_reply_with_odd_bytes_of_others_is_read_all_the_same() -> None:
    assert decode_json(b'{"data":"\xff","expires":1e999}') == {
        "data": "\udcff",
        "expires": float("inf"),
    }
