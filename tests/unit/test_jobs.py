"""Jobs as they are read."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, cast

import msgspec
import pytest

from aioqless import InvalidData, Job, JobState
from aioqless.client.job.decoding import JobFields, decode_row
from aioqless.client.job.state import FailureReason, list_stages
from tests.lua.job_rows import row_fields
from tests.unit.records import job_of, read_job_of, run_of

ROW: dict[str, bytes | None] = {
    "jid": b"a",
    "queue": b"mail",
    "priority": b"3",
    "retries": b"5",
    "remaining": b"4",
    "tags": b'["x"]',
    "klass": b"Greet",
    "data": b'{"n": 1}',
    "expires": b"61.5",
    "x-fence": b"9",
    "failure": b'{"group":"typo","message":"m","when":7,"worker":"w"}',
    "spawned_from_jid": b"tick",
    "x-context": b'{"trace": "1"}',
    "x-expiry": b"99.5",
    "x-cause": b'{"jid": "b"}',
    "x-parent": b'["p","charge"]',
    "x-bulk": b"b",
    "x-constraints": b'{"set":7}',
}
SET_NAME = b"import-42"


def row(waited: bytes | None = b"2.500", **fields: bytes | None) -> JobFields:
    given = ROW | {name if name in ROW else f"x-{name}": each for name, each in fields.items()}
    return decode_row([*(given[name] for name in ROW), SET_NAME, waited], "ann")


def test_rows_have_the_fields_of_the_script_in_its_order() -> None:
    assert tuple(ROW) == row_fields()


def test_row_without_the_rare_fields_is_that_of_a_job_without_them() -> None:
    short = decode_row([*list(ROW.values())[:10], None], "ann")
    rare = dict.fromkeys(list(ROW)[10:])
    assert asdict(short) == asdict(decode_row([*(ROW | rare).values(), None, None], "ann"))
    assert (short.fence, short.failure, short.spawned_from, short.context) == (9, None, None, {})


def test_row_becomes_a_record() -> None:
    assert asdict(row()) == asdict(JobFields(
        jid="a", state=JobState.RUNNING, worker="ann", klass="Greet", queue="mail",
        raw_data='{"n": 1}', priority=-3,
        retries=5, remaining=4, expires=61.5, tags=["x"], spawned_from="tick",
        fence=9,
        context={"trace": "1"}, expiry=99.5, raw_cause={"jid": "b"}, bulk="b",
        failure=FailureReason("typo", "m", 7, "w"),
        waited=2.5, is_called=True, constraints='{"set":7}', set_name="import-42",
    ))  # fmt: skip


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ("priority", b"0", 0),
        ("priority", b"-0.5", 0.5),
        ("priority", b"high", 0),
        ("waited", None, None),
        ("retries", None, 5),
        ("remaining", b"", 5),
        ("remaining", b"-1", -1),
        ("expires", b"", 0),
        ("tags", b"{}", []),
        ("tags", b'{"a":1}', []),
        ("tags", b"nonsense", []),
        ("tags", None, []),
        ("failure", b"{}", None),
        ("failure", b"[1]", None),
        ("failure", None, None),
        ("failure", b'{"group":"g"}', FailureReason("g", "", cast(float, ""), "")),
        ("raw_data", None, "null"),
        ("raw_data", b"\xff", "\udcff"),
        ("klass", None, ""),
        ("fence", None, 0),
        ("spawned_from", None, None),
    ],
)
def test_missing_and_malformed_fields_have_fallbacks(
    field: str, text: bytes | None, value: Any
) -> None:
    names = {"raw_data": "data", "spawned_from": "spawned_from_jid"}
    assert getattr(row(**{names.get(field, field): text}), field) == value


def test_repr_describes_the_job() -> None:
    assert repr(job_of()) == "<Job a Greet running in 'mail'>"
    assert repr(read_job_of()) == "<JobRecord a Greet running in 'mail'>"


# Stages


def test_events_are_grouped_into_stages() -> None:
    assert list_stages([
        {"what": "put", "when": 1, "q": "mail"},
        {"what": "popped", "when": 2, "worker": "ann"},
        {"what": "timed-out", "when": 3},
        {"what": "popped", "when": 4, "worker": "bob"},
        {"what": "done", "when": 5},
        {"what": "put", "when": 5, "q": "billing"},
        {"what": "failed", "when": 6, "group": "typo", "worker": "ann"},
        {"what": "of my own", "when": 7, "page": 1},
    ]) == [
        {"q": "mail", "put": 1, "popped": 4, "worker": "bob", "done": 5},
        {"q": "billing", "put": 5, "failed": 6},
    ]  # fmt: skip


def test_truncated_history_still_has_stages() -> None:
    assert list_stages([{"what": "popped", "when": 2, "worker": "ann"}]) == [
        {"popped": 2, "worker": "ann"}
    ]
    assert list_stages([]) == []


def test_stage_belongs_to_the_person_it_was_handed_over_to() -> None:
    (stage,) = list_stages(
        [
            {"what": "popped", "when": 2, "worker": "ann"},
            {"what": "handed-over", "when": 3, "worker": "ann", "to": "bob"},
        ]
    )
    assert stage == {"popped": 2, "worker": "bob"}


# Data


def test_unread_data_is_unchanged() -> None:
    assert run_of(data="{nonsense").changed_data() is None


def test_read_data_is_unchanged() -> None:
    run = run_of(data='{ "a": [1.0, {}] }')
    assert run.data == {"a": [1.0, {}]} and run.changed_data() is None


@pytest.mark.parametrize(
    "change", [{"a": 2}, {"a": True}, {"a": 1.0}, {"a": 1, "b": None}, [], None]
)
def test_any_change_of_the_data_is_detected(change: Any) -> None:
    run = run_of(data='{"a": 1}')
    assert run.data == {"a": 1}
    run.data = change
    assert run.changed_data() == msgspec.json.encode(change)


def test_nested_change_is_detected() -> None:
    run = run_of(data='{"a": [{"b": []}]}')
    Job[Any](run).data["a"][0]["b"].append(1)
    assert run.changed_data() == b'{"a":[{"b":[1]}]}'


def test_raw_json_is_stored_unchanged() -> None:
    run = run_of(data='{"a": 1}')
    run.data = msgspec.Raw(b'{ "a" : 1 }')
    assert run.changed_data() == b'{ "a" : 1 }'


def test_invalid_json_data_can_be_replaced() -> None:
    run = run_of(data="{nonsense")
    run.data = {"a": 1}
    assert run.changed_data() == b'{"a":1}'


@pytest.mark.parametrize("change", [object(), float("nan"), False])
def test_change_to_unserializable_data_is_refused(change: Any) -> None:
    run = run_of(data='{"a": 1}')
    run.data = change
    with pytest.raises(InvalidData):
        run.changed_data()


def test_replaced_typed_data_is_replaced_as_a_whole() -> None:
    run = run_of(data='{"a": 1, "b": 2}')
    run.read_as({"a": 1})
    assert run.changed_data() is None
    run.data = {"c": 3}
    assert run.changed_data() == b'{"c":3}'
