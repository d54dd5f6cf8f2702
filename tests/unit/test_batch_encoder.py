"""The arguments of a batch: its size, then its rows."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from aioqless.store.call import BatchEncoder

encode_batch = BatchEncoder("put_many", required="jid klass", optional="delay tags")


def test_members_that_a_row_leaves_out_are_empty() -> None:
    rows: list[Mapping[str, object]] = [
        {"jid": "a", "klass": "K", "tags": ["x"]},
        {"jid": "b", "klass": "K", "delay": 5},
    ]
    assert encode_batch(rows) == [b"2", b"a", b"K", b"", b'["x"]', b"b", b"K", b"5", b""]


@pytest.mark.parametrize("more", [{}, {"tags": None}])
def test_last_members_that_all_rows_leave_out_are_not_sent(more: dict[str, None]) -> None:
    rows: list[Mapping[str, object]] = [
        {"jid": "a", "klass": "K", "delay": 5, **more},
        {"jid": "b", "klass": "K"},
    ]
    assert encode_batch(rows) == [b"2/3", b"a", b"K", b"5", b"b", b"K", b""]


def test_empty_batch_has_no_rows() -> None:
    assert encode_batch([]) == [b"0/2"]


def test_row_with_an_unknown_or_missing_member_is_refused() -> None:
    with pytest.raises(TypeError, match="unknown argument color"):
        encode_batch([{"jid": "a", "klass": "K", "color": "red"}])
    with pytest.raises(TypeError, match="the argument klass is missing"):
        encode_batch([{"jid": "a"}])
