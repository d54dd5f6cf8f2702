"""Parsing an entry of the archive's stream as a typed record."""

from __future__ import annotations

import pytest

from aioqless.contrib.archive import Run, Unreadable, parse, parse_raw

ENTRY = {
    "v": "1", "what": "complete", "jid": "j", "klass": "k", "queue": "q", "was": "running",
    "state": "complete", "priority": "-2.5",
    "tags": '["a","b"]', "worker": "w", "put": "1763722222.123456", "popped": "1763722223.000001",
    "ended": "1763722224.999999",
    "retries": "5", "remaining": "4", "fence": "17",
}  # fmt: skip


def test_times_are_exact_to_the_microsecond() -> None:
    event = parse("1-0", ENTRY)
    assert (event.put, event.popped, event.ended) == (
        1763722222123456,
        1763722223000001,
        1763722224999999,
    )


def test_entry_is_a_typed_record() -> None:
    event = parse("1-0", ENTRY)
    assert (event.priority, event.tags, event.retries, event.remaining, event.fence) == (
        -2.5,
        ("a", "b"),
        5,
        4,
        17,
    )
    assert (event.to, event.group, event.depends, event.swept) == (None, None, (), False)
    assert event.runs == (
        Run(1763722222123456, 1763722223000001, 1763722224999999, "complete", "w", 17),
    )


def test_runs_of_a_stage_are_the_earlier_ones_and_the_last() -> None:
    earlier = (
        '[{"put":"1.5","popped":"2.5","ended":"3.5","how":"retried","worker":"v","fence":"3",'
        '"group":"g","message":"m"}]'
    )
    event = parse("1-0", ENTRY | {"runs": earlier})
    assert event.runs[0] == Run(1500000, 2500000, 3500000, "retried", "v", 3, "g", "m")
    assert [run.how for run in event.runs] == ["retried", "complete"]
    assert event.put == 1500000  # the jid of the stage


def test_job_that_did_not_run_when_it_ended_has_no_run() -> None:
    entry = {name: text for name, text in ENTRY.items() if name not in ("popped", "worker")} | {
        "what": "cancel"
    }
    event = parse("1-0", entry)
    assert event.runs == () and event.popped is None and event.put == 1763722222123456


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"v": "0"}, "its schema version is '0'"),
        ({"v": "2"}, "this reader knows '1'"),
        ({"what": "explode"}, "what='explode' is none of advance, cancel"),
        ({"jid": ""}, "it has no jid"),
        ({"klass": ""}, "it has no klass"),
        ({"ended": "yesterday"}, "ended='yesterday' is not a time"),
        ({"ended": "inf"}, "ended='inf' is not a time"),
        ({"put": "-1"}, "put='-1' is not a time"),
        ({"retries": "many"}, "retries='many' is not a number"),
        ({"fence": "nan"}, "fence='nan' is not an integer"),
        ({"tags": "{}"}, "tags can't be read"),
        ({"tags": "[1]"}, "tags can't be read"),
        ({"runs": '[{"how":"lost"}]'}, "runs can't be read"),
        ({"runs": '[{"how":"lost","ended":"x"}]'}, "runs has a time or number that is none"),
    ],
)
def test_malformed_entry_is_refused_with_a_reason(change: dict[str, str], reason: str) -> None:
    with pytest.raises(Unreadable, match="^.*" + reason.replace("[", r"\[")):
        parse("1-0", ENTRY | change)


def test_entry_is_parsed_from_the_reply_of_the_server() -> None:
    flat = [part.encode() for pair in ENTRY.items() for part in pair]
    assert parse_raw("1-0", flat) == parse("1-0", ENTRY)
    assert parse_raw("1-0", [*flat, b"message", b"caf\xe9"]).message == "caf\ufffd"
    with pytest.raises(Unreadable, match="not UTF-8"):
        parse_raw("1-0", [*flat, b"to", b"caf\xe9"])
    with pytest.raises(Unreadable, match="without a value"):
        parse_raw("1-0", flat[:-1])
