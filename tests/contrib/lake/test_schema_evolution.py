"""Lakes of older and newer versions, and tables that users changed."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Field, write_deltalake

from aioqless import Client
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.maintenance import compact, drop_payloads, erase
from aioqless.contrib.lake.reconciliation import check
from aioqless.contrib.lake.refresh import DERIVED, refresh
from aioqless.contrib.lake.schema import EVENTS, TABLES
from aioqless.contrib.lake.storage import LakeError
from tests.contrib.lake.conftest import RunLakeCommand
from tests.contrib.lake.lakes import TOMORROW, archive, at, event, raw, run

RUNS = "silver/runs"
LAST = max(TABLES)
UNREACHABLE = ("--url", "redis://127.0.0.1:1")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake of one event, and the tables of it."""
    lake = Lake(tmp_path / "lake", create=True)
    archive(lake, event("a", run(0, 1, 2), data="payload"))
    refresh(lake)
    return lake


def open_table(lake: Lake, name: str) -> DeltaTable:
    return DeltaTable(lake.storage.within(name).url)


def columns(lake: Lake, name: str) -> set[str]:
    return {each.name for each in open_table(lake, name).schema().fields}


def remove_column(lake: Lake, table: str, column: str) -> None:
    """Change a table to what an older version made, which didn't have the column."""
    folder = Path(lake.storage.within(table).url)
    for file in lake.table(table).all_files:
        path = folder / file.path
        pq.write_table(pq.ParquetFile(path).read().drop([column]), path)
    for log in (folder / "_delta_log").glob("*.json"):
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        for line in lines:
            if "metaData" in line:
                schema = json.loads(line["metaData"]["schemaString"])
                schema["fields"] = [each for each in schema["fields"] if each["name"] != column]
                line["metaData"]["schemaString"] = json.dumps(schema)
            if "add" in line:
                line["add"]["size"] = (folder / unquote(line["add"]["path"])).stat().st_size
        log.write_text("\n".join(map(json.dumps, lines)))
    assert column not in columns(lake, table)


def replace_schema(lake: Lake, table: str, fields: dict[str, pa.DataType]) -> None:
    """Write a table again, as another program may."""
    url = lake.storage.within(table).url
    schema = pa.schema([*fields.items(), ("namespace", pa.string()), ("date", pa.date32())])
    partitions = ["namespace", "date"]
    write_deltalake(
        url, schema.empty_table(), mode="overwrite", schema_mode="overwrite",
        partition_by=partitions,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("table", "column"),
    [(EVENTS, "priority"), (EVENTS, "run_versions"), (RUNS, "worker"), (RUNS, "due")],
)
def test_a_column_that_an_older_lake_lacks_is_read_as_null_and_added_by_the_next_refresh(
    lake: Lake, table: str, column: str
) -> None:
    remove_column(lake, table, column)
    older = Lake(lake.url)
    opened = older.table(table)
    found = opened.read({each.partition for each in opened.all_files}, [column])
    assert found[column].to_pylist() == [None]
    new = {"priority": 7.0, "run_versions": ["v1"], "run_dues": [at(3)]}
    archive(older, event("b", run(2, 4, 5), **new))
    refresh(older)
    assert column in columns(lake, table)
    expected = {
        "priority": {"a": None, "b": 7.0}, "run_versions": {"a": None, "b": ["v1"]},
        "worker": {"a": "w1", "b": "w1"}, "due": {"a": None, "b": at(3)},
    }  # fmt: skip
    assert {row.jid: row[column] for row in raw(lake, table)} == expected[column]
    assert check(older) == []


def test_a_table_that_an_older_lake_lacks_is_made_by_the_next_refresh(
    lake: Lake, tmp_path: Path
) -> None:
    Path(lake.storage.within(LAST).url).rename(tmp_path / "aside")
    refresh(Lake(lake.url))
    assert columns(lake, LAST) == set(TABLES[LAST].schema.names)
    assert check(Lake(lake.url)) == []


def test_archive_adds_missing_columns_to_an_older_lake(
    lake: Lake, client: Client, run_lake_command: RunLakeCommand
) -> None:
    remove_column(lake, EVENTS, "priority")
    place = ("--namespace", client.namespace, "--lake", lake.url)
    code, _, err = run_lake_command("archive", "--url", client.url, *place)
    assert code == 0, err
    assert columns(lake, EVENTS) == set(TABLES[EVENTS].schema.names)


@pytest.mark.parametrize("table", [EVENTS, RUNS, LAST])
def test_a_newer_table_is_refused_before_redis_is_called_or_a_table_changed(
    lake: Lake, table: str, run_lake_command: RunLakeCommand
) -> None:
    open_table(lake, table).alter.set_table_properties(
        {"aioqless.version": "99"}, raise_if_not_exists=False
    )
    before = {name: open_table(lake, name).version() for name in TABLES}
    code, out, err = run_lake_command("archive", *UNREACHABLE, "--lake", lake.url)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert f"({table} of version 99)" in err and "update aioqless" in err
    assert {name: open_table(lake, name).version() for name in TABLES} == before


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"jid": pa.int64()}, "column jid of silver/runs .* is long instead of string"),
        ({"tags": pa.string()}, "column tags of silver/runs .* is string instead of array"),
    ],
)
def test_a_column_of_another_type_is_refused(
    lake: Lake, fields: dict[str, pa.DataType], reason: str
) -> None:
    replace_schema(lake, RUNS, fields)
    archive(lake, event("b", run(3, 4, 5)))
    with pytest.raises(LakeError, match=reason):
        refresh(Lake(lake.url))


def test_a_table_with_other_partitions_is_refused(tmp_path: Path) -> None:
    url = tmp_path / "bronze" / "events"
    write_deltalake(url, pa.table({"jid": ["a"]}))
    with pytest.raises(LakeError, match=r"bronze/events .* is partitioned by nothing instead of"):
        Lake(tmp_path, create=True)


def test_renamed_columns_are_refused(lake: Lake) -> None:
    log = Path(lake.storage.within(EVENTS).url, "_delta_log/00000000000000000000.json")
    protocol = {"minReaderVersion": 2, "minWriterVersion": 5}  # what a rename raises it to
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    lines = [{"protocol": protocol} if "protocol" in line else line for line in lines]
    log.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(LakeError, match=r"bronze/events .* needs reader version 2 of Delta"):
        Lake(lake.url).table(EVENTS)


def test_a_derived_table_that_is_refused_is_made_again_when_its_folder_is_deleted(
    lake: Lake,
) -> None:
    replace_schema(lake, RUNS, {"jid": pa.int64()})
    archive(lake, event("b", run(3, 4, 5)))
    with pytest.raises(LakeError, match="delete its folder; `aioqless lake tables` makes it again"):
        refresh(Lake(lake.url))
    shutil.rmtree(lake.storage.within(RUNS).url)
    refresh(Lake(lake.url))
    assert check(Lake(lake.url)) == []


def test_a_column_that_the_user_added_is_kept_with_its_values_in_other_days(lake: Lake) -> None:
    field = Field.from_arrow(pa.field("team", pa.string()))
    for table in (EVENTS, RUNS):
        opened = open_table(lake, table)
        opened.alter.add_columns([field])
        opened.update({"team": "'billing'"})
    archive(lake, *(event(jid, run(3, 4, 5), date=TOMORROW) for jid in "bc"))
    refresh(lake)
    compact(lake)
    drop_payloads(lake, TOMORROW + timedelta(days=1))
    erase(lake, ["b"])
    for table in (EVENTS, RUNS):
        assert {row.jid: row.team for row in raw(lake, table)} == {"a": "billing", "c": None}
        assert lake.table(table).schema.names[-1] == "team"
    assert {row.data for row in raw(lake, EVENTS)} == {None}
    assert check(lake) == []


def test_tables_of_an_older_version_are_rebuilt_by_the_next_refresh(lake: Lake) -> None:
    lake.table("gold/klasses").set_property("aioqless.version", "0")
    lake.table(LAST).set_property("aioqless.tables", "of an older program")
    assert lake.table("gold/klasses").is_outdated
    versions = {name: open_table(lake, name).version() for name in DERIVED}
    refresh(lake)
    assert not lake.table("gold/klasses").is_outdated
    changed = {name for name in DERIVED if open_table(lake, name).version() != versions[name]}
    assert changed == {*DERIVED} and check(lake) == []


def test_any_reader_of_delta_can_read_the_tables(whole: Lake) -> None:
    for name in TABLES:
        protocol = DeltaTable(whole.storage.within(name).url).protocol()
        assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)
        assert not protocol.reader_features and not protocol.writer_features
