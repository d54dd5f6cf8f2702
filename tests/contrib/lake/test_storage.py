"""Tables of the lake on a local folder with odd characters, and on an object store."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pa = pytest.importorskip("pyarrow")
pytest.importorskip("deltalake")

from deltalake import DeltaTable  # noqa: E402
from deltalake.exceptions import CommitFailedError  # noqa: E402

from aioqless.contrib.lake.lake import Lake  # noqa: E402
from aioqless.contrib.lake.schema import TABLES  # noqa: E402
from aioqless.contrib.lake.snapshot import ConcurrentCommit, Snapshot  # noqa: E402
from aioqless.contrib.lake.storage import LakeError  # noqa: E402
from aioqless.contrib.lake.table_files import FileWriter, as_actions, read_table  # noqa: E402
from tests.contrib.lake.object_store import BUCKET  # noqa: E402

if TYPE_CHECKING:
    from deltalake.transaction import AddAction

TABLE = "quarantine/events"
DAY, NEXT_DAY = date(2026, 11, 21), date(2026, 11, 22)
ODD = ["ql", "{shop}", "a b/é%41", "007", "..", "日本"]


@pytest.fixture(params=["folder", "object store"])
def place(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    store_environment: dict[str, str],
    monkeypatch: Any,
) -> str:
    """A URL or path of a lake that isn't there yet."""
    if request.param == "folder":
        return str(tmp_path / "sp ace" / "{é} #?[a]*")
    for name, value in store_environment.items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}/{tmp_path.name}/sp ace {{é}}"


def write(snapshot: Snapshot, *values: tuple[int, str, date]) -> list[AddAction]:
    records = [
        {"id": f"{ordinal}-0", "ordinal": ordinal, "problem": "p", "raw": None,
         "namespace": namespace, "date": day}
        for ordinal, namespace, day in values
    ]  # fmt: skip
    writer = FileWriter(snapshot.storage, snapshot.table)
    writer.add(pa.RecordBatch.from_pylist(records, snapshot.table.schema))
    return as_actions(writer.finish())


def read(snapshot: Snapshot, **which: Any) -> list[dict[str, Any]]:
    files = snapshot.files(**which)
    found: list[dict[str, Any]] = read_table(snapshot.storage, snapshot.table, files).to_pylist()
    return found


def ordinals(snapshot: Snapshot, **which: Any) -> list[int]:
    return sorted(row["ordinal"] for row in read(snapshot, **which))


def append(lake: Lake, *values: tuple[int, str, date]) -> Snapshot:
    snapshot = lake.snapshot(TABLE)
    return snapshot.commit(write(snapshot, *values))


def test_rows_are_read_as_written_whatever_the_path_and_namespace(place: str) -> None:
    lake = Lake(place, create=True)
    values = [(number, name, DAY) for number, name in enumerate(ODD)]
    append(lake, *values)
    snapshot = append(Lake(place), (100, "ql", NEXT_DAY))
    found = [
        [row[name] for name in ("ordinal", "namespace", "date", "id")] for row in read(snapshot)
    ]
    expected = [*((*each, f"{each[0]}-0") for each in values), (100, "ql", NEXT_DAY, "100-0")]
    assert sorted(map(tuple, found)) == expected
    other = DeltaTable(snapshot.storage.url, storage_options=dict(snapshot.storage.options))
    rows_of_delta = other.to_pyarrow_table().to_pylist()
    assert sorted((row["ordinal"], row["namespace"], row["date"]) for row in rows_of_delta) == [
        each[:3] for each in expected
    ]


def test_files_are_chosen_by_namespace_and_day(place: str) -> None:
    lake = Lake(place, create=True)
    append(lake, (1, "ql", DAY), (2, "ql", NEXT_DAY), (3, "other", DAY))
    snapshot = append(lake, (4, "ql", NEXT_DAY))
    assert ordinals(snapshot, namespace="ql") == [1, 2, 4]
    assert ordinals(snapshot, dates=[DAY]) == [1, 3]
    assert ordinals(snapshot, namespace="none") == []


def test_files_are_replaced_in_one_commit_and_earlier_versions_stay(place: str) -> None:
    lake = Lake(place, create=True)
    before = append(lake, (1, "{shop}", DAY), (2, "ql", DAY))
    added = write(before, (3, "{shop}", DAY))
    after = before.commit(added, before.files(namespace="{shop}"), {"refresh:{shop}": 3})
    assert ordinals(after) == [2, 3]
    assert ordinals(before) == [1, 2]
    assert (after.transaction("refresh:{shop}"), after.transaction("refresh:ql")) == (3, None)


def test_concurrent_commits_of_one_transaction_are_refused(place: str) -> None:
    lake = Lake(place, create=True)
    first, second, third = (lake.snapshot(TABLE) for _ in range(3))
    first.commit(transactions={"archive:ql": 5})
    with pytest.raises(ConcurrentCommit, match="another process changed"):
        second.commit(transactions={"archive:ql": 5})
    assert third.commit(transactions={"archive:other": 7}).transaction("archive:ql") == 5


def test_concurrent_removals_of_one_file_are_refused_and_appends_are_not(place: str) -> None:
    lake = Lake(place, create=True)
    snapshot = append(lake, (1, "ql", DAY))
    stale = lake.snapshot(TABLE)
    append(lake, (2, "ql", DAY))
    assert ordinals(snapshot.commit(removed=snapshot.all_files)) == [2]
    with pytest.raises(ConcurrentCommit):
        stale.commit(removed=stale.all_files)


def test_a_commit_of_which_the_answer_was_lost_is_no_conflict(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(place, create=True)
    append(lake, (1, "ql", DAY))
    commit = DeltaTable.create_write_transaction

    def lose(self: DeltaTable, *arguments: Any, **options: Any) -> None:
        commit(self, *arguments, **options)
        raise CommitFailedError("Transaction failed: version 2 exists")

    monkeypatch.setattr(DeltaTable, "create_write_transaction", lose)
    snapshot = lake.snapshot(TABLE)
    written = write(snapshot, (2, "ql", DAY))
    committed = snapshot.commit(written, transactions={"position": 2})
    assert ordinals(committed) == [1, 2] and committed.transaction("position") == 2


def test_a_refused_commit_of_which_no_other_process_is_the_cause_says_why(tmp_path: Path) -> None:
    lake = Lake(tmp_path, create=True)
    append(lake, (1, "ql", DAY))
    DeltaTable(lake.storage.within(TABLE).url).alter.set_table_properties(
        {"delta.appendOnly": "true"}
    )
    snapshot = lake.snapshot(TABLE)
    with pytest.raises(LakeError, match="append-only") as refused:
        snapshot.commit(removed=snapshot.all_files)
    assert not isinstance(refused.value, ConcurrentCommit)


def test_files_that_another_program_compacted_are_read_and_replaced(place: str) -> None:
    lake = Lake(place, create=True)
    for number in range(3):
        append(lake, *((number * 10 + at, name, DAY) for at, name in enumerate(ODD)))
    place_of_table = lake.snapshot(TABLE).storage
    DeltaTable(place_of_table.url, storage_options=dict(place_of_table.options)).optimize.compact()
    compacted = lake.snapshot(TABLE)
    assert len(compacted.all_files) == len(ODD)
    assert len(ordinals(compacted)) == 3 * len(ODD)
    kept = compacted.commit(removed=compacted.files(namespace="a b/é%41"))
    assert len(ordinals(kept)) == 3 * (len(ODD) - 1)


def test_large_writes_are_divided_into_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from aioqless.contrib.lake import table_files

    monkeypatch.setattr(table_files, "_BUFFER_BYTES", 1_000)
    lake = Lake(tmp_path / "lake", create=True)
    snapshot = lake.snapshot(TABLE)
    writer = table_files.FileWriter(snapshot.storage, snapshot.table)
    batch = pa.RecordBatch.from_pylist(
        [
            {
                "id": "1-0",
                "ordinal": at,
                "problem": "p" * 9,
                "raw": None,
                "namespace": "ql",
                "date": DAY,
            }
            for at in range(100)
        ],
        pa.schema([(each.name, each.type) for each in snapshot.table.schema]),
    )
    for _ in range(3):
        writer.add(batch)
    assert len(writer.finish()) == 3
    assert snapshot.all_files == lake.snapshot(TABLE).all_files == []


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
        ("/tmp/a%20b", "escapes"),
        ("/tmp/a\\b", "escapes"),
        (f"s3://no-{BUCKET}/lake", "the bucket doesn't exist"),
    ],
)
def test_unusable_urls_are_refused_in_one_sentence(
    url: str, reason: str, store_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in store_environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(LakeError, match=reason) as refused:
        Lake(url, create=True)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("url", ["s3://bucket/lake", "gs://bucket/lake", "az://bucket/lake"])
def test_missing_credentials_are_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/nonexistent")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(LakeError, match="no credentials"):
        Lake(url)


def test_an_unreachable_object_store_is_named(
    store_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**store_environment, "AWS_ENDPOINT_URL": "http://127.0.0.1:1"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(LakeError, match="can't be reached"):
        Lake(f"s3://{BUCKET}/lake", create=True)


def test_credentials_are_not_shown(
    store_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**store_environment, "AWS_SECRET_ACCESS_KEY": "hidden"}.items():
        monkeypatch.setenv(name, value)
    lake = Lake(f"s3://{BUCKET}/secret", create=True)
    assert lake.storage.options["AWS_SECRET_ACCESS_KEY"] == "hidden"
    assert "hidden" not in repr(lake.storage)


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


def test_reading_does_not_create_a_lake(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="there is no lake at"):
        Lake(tmp_path / "lake")
    assert not (tmp_path / "lake").exists()


def test_times_in_statistics_are_moments(tmp_path: Path) -> None:
    lake = Lake(tmp_path, create=True)
    snapshot = lake.snapshot("silver/runs")
    ended = datetime(2026, 11, 21, 12, tzinfo=UTC)
    values = {"id": "1-0", "jid": "j", "ended": ended, "namespace": "ql", "date": DAY}
    snapshot.append(pa.RecordBatch.from_pylist([values], snapshot.table.schema))
    assert [each.greatest["ended"] for each in lake.snapshot("silver/runs").all_files] == [ended]
