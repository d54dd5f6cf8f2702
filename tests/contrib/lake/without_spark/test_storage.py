"""Tables of the lake on a local folder with odd characters, and on an object store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from aioqless.contrib.lake import open_table
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.open_table import AddedFile, ConcurrentCommit, DataFile, OpenTable
from aioqless.contrib.lake.schema import TABLES
from aioqless.contrib.lake.storage import LakeError, locate
from tests.contrib.lake.lakes import TODAY as DAY
from tests.contrib.lake.lakes import TOMORROW as NEXT_DAY
from tests.contrib.lake.servers import BUCKET

TABLE = "quarantine/events"
ODD = ["ql", "{shop}", "a b/é%41", "007", "..", "日本", "it's"]


@pytest.fixture(params=["folder", "object store"])
def place(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    stored_lake: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[str]:
    """A URL or path of a lake that isn't there yet."""
    if request.param == "folder":
        yield str(tmp_path / "sp ace" / "{é} #?*")
    else:
        monkeypatch.chdir(tmp_path)
        yield stored_lake
        assert not list(tmp_path.iterdir()), "nothing is written to a local folder of that name"


Value = tuple[int, str, Any]


def rows(*values: Value) -> list[Any]:
    records = [
        {"id": f"{ordinal}-0", "ordinal": ordinal, "problem": "p", "namespace": name, "date": day}
        for ordinal, name, day in values
    ]
    return [pa.RecordBatch.from_pylist(records, TABLES[TABLE].schema)]


def append(lake: Lake, *values: Value) -> OpenTable:
    table = lake.table(TABLE)
    table.append(rows(*values))
    return table


def partitions(table: OpenTable, **which: Any) -> set[Any]:
    return {each.partition for each in table.files(**which)}


def ordinals(table: OpenTable, **which: Any) -> list[int]:
    return sorted(table.read(partitions(table, **which), ["ordinal"])["ordinal"].to_pylist())


@pytest.mark.parametrize(("at_once", "kept"), [(0, 2**20), (2**20, 0), (2**20, 2**20)])
def test_rows_are_read_as_written_whatever_the_path_and_namespace(
    place: str, at_once: int, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many rows are not read into memory at once, whether they are compressed well or not."""
    monkeypatch.setattr(open_table, "_READ_AT_ONCE", at_once)
    monkeypatch.setattr(open_table, "_KEPT_AT_ONCE", kept)
    values = [(number, name, DAY) for number, name in enumerate(ODD)]
    append(Lake(place, create=True), *values)
    table = append(Lake(place), (100, "ql", NEXT_DAY))
    expected = [*values, (100, "ql", NEXT_DAY)]
    other = DeltaTable(table.storage.url, storage_options=dict(table.storage.options))
    found = table.rows(partitions(table))
    is_kept = isinstance(found, pa.Table)
    assert is_kept == bool(at_once and kept)
    for each in (found if is_kept else found.to_table(), other.to_pyarrow_table()):
        assert (
            sorted((r["ordinal"], r["namespace"], r["date"]) for r in each.to_pylist()) == expected
        )
    table.optimize()
    table.delete({("a b/é%41", DAY)})
    assert ordinals(table) == [0, 1, 3, 4, 5, 6, 100]


def add_of(file: DataFile) -> AddedFile:
    """A file of a table as one that is added to it."""
    statistics = json.dumps({"numRecords": file.rows})
    return AddedFile(file.path, file.size, file.rows, file.namespace, file.date, statistics)


def test_files_are_chosen_exchanged_and_deleted_in_one_commit(place: str) -> None:
    lake = Lake(place, create=True)
    table = append(lake, (1, "it's {é}", DAY), (2, "ql", NEXT_DAY), (3, "ql", DAY))
    assert [ordinals(table, **each) for each in (
        {"namespace": "ql"}, {"dates": [DAY]}, {"namespace": "none"}
    )] == [[2, 3], [1, 3], []]  # fmt: skip
    version = table.version
    (odd,), (later,) = table.files("it's {é}"), table.files("ql", [NEXT_DAY])
    table.commit([], [odd, later], {"refresh": 2})
    table.commit([add_of(odd)], table.files("ql"), {"refresh": 3})
    assert (ordinals(table), table.version) == ([1], version + 2)
    assert (table.transaction("refresh"), table.transaction("other")) == (3, None)
    table.commit([add_of(later)], transactions={"refresh": 4})
    table.delete({("it's {é}", DAY)}, {"prune": 1})
    assert (ordinals(table), table.version) == ([2], version + 4)
    assert (table.transaction("refresh"), table.transaction("prune")) == (4, 1)
    table.commit([], transactions={"refresh": 5})
    assert ordinals(Lake(place).table(TABLE)) == [2]
    assert Lake(place).table(TABLE).transaction("refresh") == 5


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.append([], {"archive:ql": 5}),
        lambda table: table.commit([], table.files("ql", [DAY])),
        lambda table: table.set_property("a", "1"),
    ],
)
def test_two_changes_of_the_same_are_refused_and_two_appends_are_not(
    place: str, change: Callable[[OpenTable], None]
) -> None:
    append(Lake(place, create=True), (1, "ql", DAY))
    first, second = (Lake(place).table(TABLE) for _ in range(2))
    change(first)
    with pytest.raises(ConcurrentCommit, match="another process changed"):
        change(second)
    third = Lake(place).table(TABLE)
    first.append(rows((2, "ql", NEXT_DAY)), {"archive:other": 6})
    third.append([], {"archive:third": 7})
    assert third.transaction("archive:other") == 6 and 2 in ordinals(third)


def test_a_commit_of_which_the_answer_was_lost_is_no_conflict(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = append(Lake(place, create=True), (1, "ql", DAY))

    def lose(*arguments: Any, **options: Any) -> None:
        own = DeltaTable(table.storage.url, storage_options=dict(table.storage.options))
        deltalake.write_deltalake(own, *arguments[1:], **options)
        raise CommitFailedError("Transaction failed: version 2 exists")

    monkeypatch.setattr(open_table, "write_deltalake", lose)
    table.append(rows((2, "ql", DAY)), {"position": 2})
    assert ordinals(table) == [1, 2] and table.transaction("position") == 2


def test_a_refused_commit_of_which_no_other_process_is_the_cause_says_why(tmp_path: Path) -> None:
    lake = Lake(tmp_path, create=True)
    append(lake, (1, "ql", DAY)).delta.alter.set_table_properties({"delta.appendOnly": "true"})
    with pytest.raises(LakeError, match=r"append.only") as refused:
        lake.table(TABLE).delete({("ql", DAY)})
    assert not isinstance(refused.value, ConcurrentCommit)


def test_tables_and_columns_are_described_in_the_metadata(tmp_path: Path) -> None:
    lake = Lake(tmp_path, create=True)
    for name, table in TABLES.items():
        opened = DeltaTable(lake.storage.within(name).url)
        assert opened.metadata().description == table.description
        assert opened.metadata().partition_columns == ["namespace", "date"]
        assert all(
            each.metadata.get("comment", "").endswith(".") for each in opened.schema().fields
        )


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("hdfs://name/lake", "not of hdfs"),
        ("memory://lake", "not of memory"),
        ("ftp://host/lake", "not of ftp"),
        ("s3a:/bucket/lake", "write s3a://bucket/prefix"),
        ("s3://", "write s3://bucket/prefix"),
        ("s3://bucket/a%20b", "without any of the characters"),
        ("file://host/lake", "names no host"),
        *((f"/tmp/a{text}b", "delta-rs misreads") for text in ("%20", "\\", "[", "|")),
        (f"s3://no-{BUCKET}/lake", "the bucket doesn't exist"),
    ],
)
@pytest.mark.usefixtures("stored_lake")
def test_unusable_urls_are_refused_in_one_sentence(url: str, reason: str) -> None:
    with pytest.raises(LakeError, match=reason) as refused:
        Lake(url, create=True)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("endpoint", "reason"),
    [("http://127.0.0.1:1", "can't be reached"), (None, "there is no lake")],
)
def test_settings_of_an_object_store_are_not_shown(
    endpoint: str | None, reason: str, stored_lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
    if endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    with pytest.raises(LakeError, match=reason) as refused:
        Lake(stored_lake)
    assert locate(stored_lake).options["AWS_SECRET_ACCESS_KEY"] == "hidden"
    assert "hidden" not in f"{locate(stored_lake)!r} {refused.value}"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("notes.txt", "it has 'notes.txt'"),
        ("bronze/events/namespace=ql/date=2026-11-21/a.parquet", "it has 'namespace=ql'"),
    ],
)
@pytest.mark.parametrize("create", [True, False])
def test_a_folder_with_other_contents_is_refused(
    name: str, reason: str, create: bool, tmp_path: Path
) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).touch()
    with pytest.raises(LakeError, match=reason):
        Lake(tmp_path, create=create)
    assert [each.name for each in tmp_path.rglob("*") if each.is_file()] == [Path(name).name]
