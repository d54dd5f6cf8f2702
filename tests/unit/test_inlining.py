"""Keys are inlined where scripts use them."""

from __future__ import annotations

import re

import pytest

from aioqless.store.command_header import command_names
from aioqless.store.inlining import inline_keys, insert_namespace
from aioqless.store.script_composer import compose


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("redis.call('GET', keys.fence())", "redis.call('GET', (ns .. ':x:fence'))"),
        ("keys.job(jid)", "(ns .. ':j:' .. jid)"),
        (
            "keys.job(job.jid) .. keys.history(top[i + 1])",
            "(ns .. ':j:' .. job.jid) .. (ns .. ':j:' .. top[i + 1] .. '-history')",
        ),
        ("keys.event_channel('jid')", "(ns .. ':' .. 'jid')"),
        ("keys.waiting(work)", "(ns .. ':q:' .. work .. '-work')"),
    ],
)
def test_key_with_simple_arguments_is_inlined(line: str, written: str) -> None:
    assert inline_keys(line) == written


@pytest.mark.parametrize(
    "line",
    [
        "keys.job(next(jids))",
        "keys.deferred_jids(what .. ':' .. jid)",
        "{work = keys.waiting}",
        "keys.job()",
        "mykeys.job(jid)",
    ],
)
def test_key_with_complex_arguments_stays_a_call(line: str) -> None:
    assert inline_keys(line) == line


def test_namespace_becomes_part_of_the_key() -> None:
    assert insert_namespace("it's", inline_keys("keys.job(jid)")) == "('it\\'s:j:' .. jid)"


@pytest.mark.parametrize("command", command_names())
def test_scripts_define_functions_only_for_keys_that_are_not_inlined(command: str) -> None:
    text = compose(command, "ql").text
    for name in re.findall(r"^function keys\.(\w+)", text, re.MULTILINE):
        assert len(re.findall(rf"\bkeys\.{name}\b", text)) > 1
