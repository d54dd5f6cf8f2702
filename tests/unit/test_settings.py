"""Settings of workers, and validation of names and numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import pytest

from aioqless import Client, Settings, Worker, validation
from aioqless.worker import ReconnectDelays


@pytest.mark.parametrize(
    ("make", "option", "hint"),
    [
        (Settings, "queue", 'Settings(queues=["mail"])'),
        (Worker, "queue", 'Worker(client, app.jobs, settings=Settings(queues=["mail"]))'),
        (Worker, "queues", "Worker(client, app.jobs, settings=Settings(queues=...))"),
        (Worker, "concurrency", "Worker(client, app.jobs, settings=Settings(concurrency=...))"),
        (Client, "host", "Client(aioqless.redis_url(host=...))"),
    ],
)
def test_option_of_another_name_or_place_says_what_to_write(
    make: Callable[..., object], option: str, hint: str
) -> None:
    with pytest.raises(TypeError, match=f"no option {option!r}: write {re.escape(hint)}"):
        make(**{option: 5})


def test_unknown_option_is_refused_as_by_any_constructor() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        Settings(colour="red")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"queues": ()}, "queues must be one name or more"),
        ({"queues": "mail"}, "queues must be one name or more"),
        ({"queues": ("mail", "")}, "queue must not be empty"),
        ({"queues": ("a\tb",)}, "control character"),
        ({"queues": ("mail", "text", "mail")}, "names one twice"),
        ({"concurrency": 0}, "concurrency must be an integer >= 1"),
        ({"concurrency": 1.5}, "concurrency must be an integer"),
        ({"concurrency": True}, "concurrency must be an integer"),
        ({"poll": 0}, "poll must be finite and >= 0.01"),
        ({"poll": math.nan}, "poll must be finite"),
        ({"poll": math.inf}, "poll must be finite"),
        ({"shutdown_timeout": -1}, "shutdown_timeout must be finite and >= 0"),
        ({"threads": 0}, "threads must be an integer"),
        ({"processes": 0}, "processes must be an integer >= 1"),
        ({"max_jobs_per_process": 0}, "max_jobs_per_process must be an integer >= 1"),
        ({"kill_after": -1}, "kill_after must be finite"),
        ({"max_jobs": 0}, "max_jobs must be an integer >= 1"),
        ({"max_memory": 0.5}, "max_memory must be an integer"),
    ],
)
def test_invalid_settings_are_refused_with_a_reason(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Settings(**wrong)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"first": 0}, "first must be finite and >= 0.001"),
        ({"first": 2, "longest": 1}, "reconnect.longest must be finite and >= 2"),
    ],
)
def test_reconnect_delays_out_of_range_are_refused_with_a_reason(
    wrong: dict[str, Any], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        ReconnectDelays(**wrong)


def test_reconnect_must_be_of_its_class() -> None:
    with pytest.raises(TypeError, match="reconnect must be ReconnectDelays, not"):
        Settings(reconnect={})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [{"queues": (7,)}, {"poll": "1"}, {"shutdown_timeout": None}, {"shutdown_timeout": True}],
)
def test_settings_of_another_type_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="must be a"):
        Settings(**wrong)


def test_zero_shutdown_timeout_is_allowed() -> None:
    assert Settings(shutdown_timeout=0).shutdown_timeout == 0


# Names


@pytest.mark.parametrize("name", ["mail", "a b", "a:b", "ä€𝄞", "x" * 512, "\udce4", "a-work"])
def test_most_texts_are_valid_names(name: str) -> None:
    assert validation.check_name("queue", name) == name


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "queue must not be empty"),
        ("x" * 513, r"queue 'x+'… must be at most 512 bytes"),
        ("ä" * 257, "at most 512 bytes"),
        ("a\nb", r"queue 'a\\nb' contains a control character"),
        ("a\x7f", "control character"),
        ("\ud800", "is not valid Unicode"),
    ],
)
def test_invalid_name_is_refused_with_a_reason(name: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        validation.check_name("queue", name)


@pytest.mark.parametrize("name", [None, 7, b"mail", ["mail"]])
def test_name_must_be_a_string(name: Any) -> None:
    with pytest.raises(TypeError, match="queue must be a string"):
        validation.check_name("queue", name)


@pytest.mark.parametrize("jid", ["a-history", "a-dependencies", "a-dependents", "-history"])
def test_jid_that_collides_with_keys_of_another_job_is_refused(jid: str) -> None:
    with pytest.raises(ValueError, match="must not end in"):
        validation.check_jid("jid", jid)


def test_jid_may_contain_key_suffixes_elsewhere() -> None:
    assert validation.check_jid("jid", "history-a") == "history-a"


# Numbers


@pytest.mark.parametrize("number", [0, 1.5, 10**9, 1e-9])
def test_finite_numbers_are_accepted(number: float) -> None:
    assert validation.check_number("delay", number, least=0) == number


def test_number_without_a_minimum_may_be_negative() -> None:
    assert validation.check_number("priority", -1e9) == -1e9


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, -0.1])
def test_number_out_of_range_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match=r"delay must be finite and >= 0"):
        validation.check_number("delay", number, least=0)


@pytest.mark.parametrize("number", [True, "1", None])
def test_number_of_another_type_is_refused(number: Any) -> None:
    with pytest.raises(TypeError, match="delay must be a number"):
        validation.check_number("delay", number)


# Adapted names


@pytest.mark.parametrize(
    ("text", "fitting"),
    [
        ("mail-Typo", "mail-Typo"),
        ("a\nb\x7f", "a?b?"),
        ("x" * 600, "x" * 512),
        ("ä" * 300, "ä" * 256),
        ("xä" + "y" * 511, "y" * 511),
    ],
)
def test_invalid_name_is_adapted_to_a_valid_one(text: str, fitting: str) -> None:
    assert validation.fit_name(text) == fitting == validation.check_name("group", fitting)


def test_lone_surrogates_are_escaped() -> None:
    assert (
        validation.to_text("a\ud800b") == "a\\ud800b"
        and validation.fit_name("a\ud800b") == "a\\ud800b"
    )
    assert validation.to_text(ValueError("x")) == "x"


def test_string_is_refused_as_a_list_of_names() -> None:
    assert validation.check_names("tags", ("x", "y")) == ["x", "y"]
    with pytest.raises(TypeError, match=r"tags must be a list of strings \(got the string 'xy'\)"):
        validation.check_names("tags", "xy")
    with pytest.raises(ValueError, match="each of tags must not be empty"):
        validation.check_names("tags", ["x", ""])
