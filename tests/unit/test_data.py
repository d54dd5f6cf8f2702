"""Data of a job: any JSON value but false, kept byte for byte."""

from __future__ import annotations

import json
import math
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioqless import InvalidData
from aioqless.client.jid import Jid
from aioqless.client.job_data import MAX_BYTES, MAX_DEPTH, decode, encode, shape
from tests.unit.typed import Box, Point
from tests.worker import odd_errors

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def nested(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


@settings(max_examples=60, deadline=None)
@given(values.filter(lambda value: value is not False))
def test_any_json_but_false_round_trips(value: Any) -> None:
    text = encode(value).decode()
    assert decode(text) == value
    assert json.loads(text) == value


def test_dataclasses_and_structs_become_json_objects() -> None:
    assert encode(Box([Point(1), Point(2, 3)])) == b'{"points":[{"x":1,"y":0},{"x":2,"y":3}]}'


class Money(float):
    """A number with a class of its own, such as NumPy's."""


class Count(int):
    """An integer with a class of its own."""


class SafeText(str):
    """A string whose str() is itself, such as Django's."""

    def __str__(self) -> str:
        return self


def test_subclasses_of_strings_and_numbers_are_what_they_are_made_of() -> None:
    jid = Jid("5f3c", cast(Any, None))
    value = {jid: [jid, SafeText("a"), Money(1.5), Count(3)]}
    assert encode(value) == b'{"5f3c":["5f3c","a",1.5,3]}'
    assert shape(value) == shape({"5f3c": ["5f3c", "a", 1.5, 3]})
    with pytest.raises(InvalidData):
        encode([Money("nan")])


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, [1, math.nan], {"a": {"b": math.inf}}, Point(math.nan)],  # type: ignore[arg-type]
)
def test_nan_and_infinity_are_refused_at_any_depth(value: Any) -> None:
    with pytest.raises(InvalidData, match="can't be written as JSON"):
        encode(value)


@pytest.mark.parametrize("value", ["\ud800", ["a\udfff"], {"\udce4": 1}])
def test_lone_surrogates_are_refused(value: Any) -> None:
    with pytest.raises(InvalidData, match="can't be written as JSON"):
        encode(value)


@pytest.mark.parametrize("value", [False, msgspec.Raw(b"false"), msgspec.Raw(b" false\n")])
def test_false_is_refused_because_other_clients_read_it_as_missing(value: Any) -> None:
    with pytest.raises(InvalidData, match="data must not be false"):
        encode(value)


def test_nesting_beyond_the_parser_of_the_scripts_is_refused() -> None:
    assert encode(nested(MAX_DEPTH))
    with pytest.raises(InvalidData, match="nested deeper than 900 levels"):
        encode(nested(MAX_DEPTH + 1))


def test_brackets_in_strings_do_not_count_as_nesting() -> None:
    assert encode("[" * 2 * MAX_DEPTH)


@pytest.mark.parametrize("levels", [10_000, 200_000])
def test_extreme_nesting_is_refused_without_a_crash(levels: int) -> None:
    with pytest.raises(InvalidData):
        encode(msgspec.Raw(b"[" * levels + b"]" * levels))
    with pytest.raises(InvalidData):
        decode("[" * levels + "]" * levels)


def test_data_at_the_size_limit_is_accepted_and_one_byte_more_refused() -> None:
    assert len(encode("x" * 98, max_bytes=100)) == 100
    with pytest.raises(
        InvalidData,
        match=r"data must be at most 100 bytes, the client's max_data \(got 101\)",
    ):
        encode("x" * 99, max_bytes=100)
    with pytest.raises(InvalidData, match="got 1,048,578"):
        encode("x" * MAX_BYTES)


def test_error_shows_only_the_beginning_of_the_data() -> None:
    with pytest.raises(InvalidData) as refused:
        encode(["x" * 5000, math.nan])
    assert len(str(refused.value)) < 400


# Strings that are JSON already


@pytest.mark.parametrize(
    "text", [b'{ "a" : [ ] }', b"12345678901234567890123", b"1.0", b'"\\ud800"', b"1e999", b"[]"]
)
def test_raw_json_is_put_byte_for_byte(text: bytes) -> None:
    assert encode(msgspec.Raw(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"NaN",
        b"[Infinity]",
        b"-Infinity",
        b"0x10",
        b"{'a': 1}",
        b"1 2",
        b'"\xff"',
        b"\xef\xbb\xbf1",
    ],
)
def test_raw_text_that_is_not_json_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidData):
        encode(msgspec.Raw(text))


@pytest.mark.parametrize("text", [b"NaN", b'"\xff"', b'"a\nb"', b"1 2", b'{"a"'])
def test_raw_text_within_data_that_is_not_json_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidData, match="is not JSON"):
        encode({"a": [msgspec.Raw(text)]})


# Reading


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ("12345678901234567890123", 12345678901234567890123),
        ("1e999", math.inf),
        ('"\\ud800"', "\ud800"),
        ("1.0", 1.0),
    ],
)
def test_data_of_other_clients_is_read(text: str, value: Any) -> None:
    assert decode(text) == value


def test_malformed_data_of_other_clients_is_read_where_possible() -> None:
    assert math.isnan(decode("NaN"))


@pytest.mark.parametrize("text", ["", "{", "0x10", "\udcff", '"\udcff"'])
def test_invalid_json_raises(text: str) -> None:
    with pytest.raises(InvalidData, match="is not JSON"):
        decode(text)


@pytest.mark.parametrize("name", odd_errors.VALUES)
def test_value_that_cannot_be_encoded_or_shown_is_invalid_data(name: str) -> None:
    for value in (odd_errors.VALUES[name](), {"kept": [odd_errors.VALUES[name]()]}):
        with pytest.raises(InvalidData):
            encode(value)
