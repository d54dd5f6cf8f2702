"""A batch of the archive's stream becomes files of the lake, whole or not at all, and the same when
it comes again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

pa = pytest.importorskip("pyarrow")

import pyarrow.parquet as pq  # noqa: E402

from aioqless.contrib.lake.bronze import EVENTS, UNREADABLE, Bronze, covered, written  # noqa: E402
from aioqless.contrib.lake.lake import Lake, Partition  # noqa: E402
from aioqless.contrib.lake.source.event_columns import SCHEMA, batch_of  # noqa: E402
from aioqless.contrib.lake.transaction import changing  # noqa: E402

MIDNIGHT = 1_763_683_200_000  # of the 21st of November 2025, in ms
DAY = date(2025, 11, 21)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake", create=True)


@pytest.fixture
def bronze(lake: Lake) -> Iterator[Bronze]:
    with changing(lake, "archive-ql") as changes:
        yield Bronze(changes, "ql")


def entry(ms: int, jid: str, **more: str) -> tuple[bytes, list[bytes]]:
    fields = {
        "v": "1",
        "what": "complete",
        "jid": jid,
        "klass": "K",
        "queue": "q",
        "put": "1",
        "popped": "2",
        "ended": "3",
        **more,
    }
    return f"{ms}-0".encode(), [part.encode() for pair in fields.items() for part in pair]


def rows(*entries: tuple[bytes, list[bytes]], n: int = 0) -> pa.Table:  # type: ignore[name-defined]
    return pa.Table.from_batches([batch_of(n, entries, SCHEMA)])


def read(lake: Lake, table: str, column: str) -> dict[tuple[date, str], list[object]]:
    return {
        (partition.date, file.name): pq.read_table(file, partitioning=None)[column].to_pylist()
        for partition in lake.partitions(table)
        for file in lake.files(partition)
    }


def test_a_batch_is_one_file_in_each_day_that_it_has(lake: Lake, bronze: Bronze) -> None:
    found = bronze.write(
        rows(entry(MIDNIGHT - 1, "a"), entry(MIDNIGHT, "b"), entry(MIDNIGHT + 86_399_999, "c")), 7
    )
    assert found == (3, 0)
    name = "batch=00000007.parquet"
    assert read(lake, EVENTS, "jid") == {(date(2025, 11, 20), name): ["a"], (DAY, name): ["b", "c"]}


def test_rows_are_in_the_order_of_the_stream_however_they_came(lake: Lake, bronze: Bronze) -> None:
    parts = [rows(entry(MIDNIGHT + 1, "b"), n=1), rows(entry(MIDNIGHT, "a"))]
    bronze.write(pa.concat_tables(parts), 0)
    assert read(lake, EVENTS, "jid") == {(DAY, "batch=00000000.parquet"): ["a", "b"]}


def test_what_cannot_be_read_goes_to_quarantine_with_the_reason_and_the_rest_goes_on(
    lake: Lake, bronze: Bronze
) -> None:
    entries = [
        entry(MIDNIGHT, "a"), entry(MIDNIGHT, "b", v="0"), entry(MIDNIGHT, "c", ended="soon"), (b"1763683200000-3", [b"\xff", b"\xfe"]),
        entry(MIDNIGHT, "d"),
    ]  # fmt: skip
    assert bronze.write(rows(*entries), 0) == (2, 3)
    ((_, kept),) = read(lake, EVENTS, "jid").items()
    assert kept == ["a", "d"]
    ((_, problems),) = read(lake, UNREADABLE, "problem").items()
    assert [str(problem).split(";")[0] for problem in problems] == [
        "its schema version is '0'", "ended='soon' is not a time", "it is not UTF-8: b'\\xff'",
    ]  # fmt: skip
    ((_, texts),) = read(lake, UNREADABLE, "raw").items()
    assert '"jid": "b"' in str(texts[0])


def test_a_batch_that_comes_again_is_there_once(lake: Lake, bronze: Bronze) -> None:
    batch = rows(entry(MIDNIGHT, "a"), entry(MIDNIGHT, "b"))
    for _ in range(2):
        bronze.write(batch, 3)
    assert read(lake, EVENTS, "jid") == {(DAY, "batch=00000003.parquet"): ["a", "b"]}


def test_a_batch_that_comes_again_with_less_since_entries_were_cut_takes_nothing_away(
    lake: Lake, bronze: Bronze
) -> None:
    bronze.write(rows(entry(MIDNIGHT, "a"), entry(MIDNIGHT, "b")), 3)
    bronze.write(rows(entry(MIDNIGHT, "b"), n=1), 3)
    assert read(lake, EVENTS, "jid") == {(DAY, "batch=00000003.parquet"): ["a", "b"]}


def test_a_batch_that_was_compacted_with_others_is_not_written_again(
    lake: Lake, bronze: Bronze
) -> None:
    bronze.write(rows(entry(MIDNIGHT, "a")), 3)
    ((partition,)) = lake.partitions(EVENTS)
    (file,) = lake.files(partition)
    file.rename(file.with_name("batches=00000001-00000004.parquet"))
    assert covered(lake, partition, 4) and not covered(lake, partition, 5)
    bronze.write(rows(entry(MIDNIGHT, "a")), 3)
    assert len(lake.files(partition)) == 1
    assert written(lake, "ql") == 4


def test_what_is_half_written_is_seen_by_nobody_and_removed(lake: Lake) -> None:
    with changing(lake, "archive-ql") as changes:
        staged = changes.folder()
        staged.write_bytes(b"half a file")
        assert lake.partitions(EVENTS) == []
    with changing(lake, "archive-ql"):
        assert not staged.exists()


def test_jids_that_have_no_job_any_more_are_set_aside_once(lake: Lake, bronze: Bronze) -> None:
    assert [bronze.set_aside(jids) for jids in (["b", "a"], ["a"], ["c", "a"])] == [2, 0, 1]
    ((_, texts),) = read(lake, UNREADABLE, "raw").items()
    assert texts == ['{"jid": "a"}', '{"jid": "b"}', '{"jid": "c"}']


def test_the_latest_batch_of_a_namespace_is_known_by_its_files(lake: Lake, bronze: Bronze) -> None:
    assert written(lake, "ql") is None
    bronze.write(rows(entry(MIDNIGHT, "a", v="0")), 9)
    bronze.write(rows(entry(MIDNIGHT, "a")), 4)
    assert (written(lake, "ql"), written(lake, "other")) == (9, None)
    assert Partition(UNREADABLE, "ql", DAY) in lake.partitions(UNREADABLE)
