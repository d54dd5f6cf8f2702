"""The filter language: parsed, written, and refused."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioqless.contrib.job_filter import KEYS, STATES, Condition, JobFilter, Text

NOW = 1_893_553_200.0  # 2030-01-02T03:00Z
TEXT_KEYS = [each for each in KEYS if each not in ("state", "text", "age", "run", "since", "until")]
texts = st.text(st.characters(codec="utf-8"), max_size=8)
text_values = st.builds(Text, texts, st.booleans(), st.booleans())
names = st.from_regex(r'[^\s":,*.]{1,6}', fullmatch=True) | st.sampled_from(["-x", "data", *KEYS])
paths = st.lists(names, min_size=1, max_size=3)


def _tuples(values: st.SearchStrategy[Text], most: int = 3) -> st.SearchStrategy[tuple[Text, ...]]:
    return st.lists(values, min_size=1, max_size=most).map(tuple)


conditions = st.one_of(
    st.builds(Condition, st.sampled_from(TEXT_KEYS), _tuples(text_values), st.booleans()),
    st.builds(
        Condition,
        paths.map(lambda names: "data." + ".".join(names)),
        _tuples(text_values),
        st.booleans(),
    ),
    st.builds(
        Condition, st.just("state"), _tuples(st.sampled_from(STATES).map(Text)), st.booleans()
    ),
    st.builds(
        Condition, st.just("text"), _tuples(st.builds(Text, texts.filter(bool)), 1), st.booleans()
    ),
    st.builds(
        Condition,
        st.sampled_from(["age", "run"]),
        _tuples(
            st.from_regex(r"[<>][1-9]\d{0,3}(\.5)?(ms|s|m|h|d|w)", fullmatch=True).map(Text), 1
        ),
        st.booleans(),
    ),
    st.builds(
        Condition,
        st.sampled_from(["since", "until"]),
        _tuples(
            st.sampled_from(["03:00", "30m", "2030-01-31", "2030-01-31 03:00:05Z"]).map(Text), 1
        ),
        st.booleans(),
    ),
)


@given(st.lists(conditions, max_size=6).map(tuple).map(JobFilter))
def test_filter_is_read_as_it_was_written(wanted: JobFilter) -> None:
    assert JobFilter.parse(str(wanted)) == wanted
    json.loads(wanted.encode(NOW))


@given(st.text(alphabet='ab:,"*\\-<>. \n', max_size=20))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        wanted = JobFilter.parse(text)
    except ValueError:
        return
    assert JobFilter.parse(str(wanted)) == wanted


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("state:faild", "unknown state 'faild': it is one of waiting, scheduled,"),
        ("state:fail*", "unknown state 'fail'"),
        ("stat:failed", "unknown key 'stat'; did you mean 'state'?"),
        ("age:1h", "'1h' is no limit of a duration: write < or >"),
        ("age:<1y", "'<1y' is no limit of a duration"),
        ("since:noon", "'noon' is no time: write 03:00"),
        ("since:25:00", "'25:00' is no time"),
        ("klass:app mail:", "'mail:' can't be read"),
        ("klass:a*b", "'klass:a*b' can't be read"),
        ('note:"two words', "'note:\"two' can't be read"),
        ("amount:>5", "only age and run are compared"),
        ("items..sku:1", "'data.items..sku' is no path in the data"),
        ("a.a.a.a.a.a.a.a.a.a.a:1", "write up to 10 names"),
        ("run:<1s,>2s", "takes one whole value"),
        ('""', "is empty, and would match all jobs"),
        ('-""', "is empty, and would match all jobs"),
        (" ".join(["a"] * 21), "at most 20 words (got 21)"),
        ("a:" + ",".join("1" * 51), "at most 50 values (got 51)"),
    ],
)
def test_malformed_word_is_refused_with_what_is_possible(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        JobFilter.parse(text)


def test_blocked_is_another_name_of_depends() -> None:
    assert JobFilter.parse("-state:failed,blocked") == JobFilter.parse("-state:failed,depends")
    assert str(JobFilter.parse("data.state:blocked")) == "data.state:blocked"


def test_reserved_names_in_the_data_are_reached_by_a_prefix() -> None:
    (condition,) = JobFilter.parse("data.state:open").conditions
    assert (condition.path, str(condition)) == ("state", "data.state:open")
    (condition,) = JobFilter.parse("data.customer:7").conditions
    assert str(condition) == "customer:7"
    assert JobFilter.parse("state:failed a:1,2 -b:3").paths == ["a", "b"]
    assert str(JobFilter.parse("data.-x:1")) == "data.-x:1"


def _times(text: str) -> list[float]:
    conditions = json.loads(JobFilter.parse(text).encode(NOW))
    return [each.get("least", each.get("most")) - NOW for each in conditions]


def test_times_are_utc_and_times_of_a_day_the_latest_ones() -> None:
    assert _times("since:2030-01-02T03:00") == _times("since:2030-01-02T04:00+01:00") == [0]
    assert _times("since:02:59:30 until:03:00") == [-30, 0]
    assert _times("since:03:01") == [60 - 86400]
    assert _times("since:23:00 until:03:10") == [-4 * 3600, 600]
    assert _times("since:30m until:1.5m") == [-1800, -90]
    assert _times("age:<1h") == [-3600] and _times("age:>1.5m") == [-90]


def test_filters_are_combined_without_repeating_words() -> None:
    both = JobFilter.parse("state:failed a:1") & JobFilter.parse("state:failed b:2")
    assert str(both) == "state:failed a:1 b:2"
