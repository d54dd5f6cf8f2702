"""Request ids, by which a call that is sent again is recognized."""

import asyncio
from contextlib import suppress

from aioqless.redis.connection import Connection
from aioqless.store import ScriptStore


def line_of(request: str) -> str:
    return request.partition(":")[0]


def test_calls_at_once_have_lines_of_their_own_which_later_calls_use_again() -> None:
    store = ScriptStore(Connection("redis://127.0.0.1"))
    with store.request() as first, store.request() as second:
        assert line_of(first) != line_of(second)
    with store.request() as third:
        assert line_of(third) in {line_of(first), line_of(second)}
        assert third not in {first, second}


def test_line_of_a_canceled_call_is_not_used_again_since_the_call_may_be_sent_again() -> None:
    store = ScriptStore(Connection("redis://127.0.0.1"))
    with suppress(asyncio.CancelledError), store.request() as canceled:
        raise asyncio.CancelledError
    with store.request() as later:
        assert line_of(later) != line_of(canceled)
