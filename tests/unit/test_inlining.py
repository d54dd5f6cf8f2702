"""Keys are inlined where scripts use them."""

from __future__ import annotations

import pytest

from aioqless.store.inlining import inline_keys, insert_namespace


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
        "keys.noted_jids(what .. ':' .. jid)",
        "{work = keys.waiting}",
        "keys.job()",
        "mykeys.job(jid)",
    ],
)
def test_key_with_complex_arguments_stays_a_call(line: str) -> None:
    assert inline_keys(line) == line


def test_namespace_becomes_part_of_the_key() -> None:
    assert insert_namespace("it's", inline_keys("keys.job(jid)")) == "('it\\'s:j:' .. jid)"
