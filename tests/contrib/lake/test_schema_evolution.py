"""Lakes of older and newer versions, and tables that users changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Field, Schema
from pyspark.sql import SparkSession

from aioqless import Client
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.maintenance import compact, drop_payloads, erase
from aioqless.contrib.lake.open_table import OpenTable
from aioqless.contrib.lake.read.reconciliation import check
from aioqless.contrib.lake.refresh import refresh
from aioqless.contrib.lake.schema import DERIVED, EVENTS, TABLES
from aioqless.contrib.lake.storage import LakeError
from tests.contrib.lake.conftest import RunLakeCommand
from tests.contrib.lake.lakes import (
    TOMORROW,
    at,
    before,
    copied,
    event,
    fill,
    open_session,
    raw,
    run,
)

RUNS = "silver/runs"
LAST = max(TABLES)


@pytest.fixture(scope="module")
def original(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Return a lake of one event, and the tables of it."""
    lake = Lake(tmp_path_factory.mktemp("original") / "lake", create=True)
    fill(lake, event("a", run(0, 1, 2), data="payload"))
    return lake


@pytest.fixture
def lake(original: Lake, tmp_path: Path) -> Lake:
    """Return a copy of this lake, to be changed."""
    return copied(original, tmp_path / "lake")


def open_table(lake: Lake, name: str) -> DeltaTable:
    return DeltaTable(lake.storage.within(name).url)


def columns(lake: Lake, name: str) -> set[str]:
    return {each.name for each in open_table(lake, name).schema().fields}


def edit_log(lake: Lake, table: str, edit: Callable[[dict[str, Any]], object]) -> None:
    """Change the actions of a table's commits."""
    for log in Path(lake.storage.within(table).url, "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        for each in actions:
            edit(each)
        log.write_text("\n".join(map(json.dumps, actions)))


def remove_column(lake: Lake, table: str, column: str) -> None:
    """Change a table to what an older version made, which didn't have the column."""
    folder = Path(lake.storage.within(table).url)
    for file in lake.table(table).all_files:
        path = folder / file.path
        pq.write_table(pq.ParquetFile(path).read().drop([column]), path)

    def edit(action: dict[str, Any]) -> None:
        if metadata := action.get("metaData"):
            schema = json.loads(metadata["schemaString"])
            schema["fields"] = [each for each in schema["fields"] if each["name"] != column]
            metadata["schemaString"] = json.dumps(schema)
        if added := action.get("add"):
            added["size"] = (folder / unquote(added["path"])).stat().st_size

    edit_log(lake, table, edit)
    assert column not in columns(lake, table)


def replace_runs(lake: Lake, column: pa.Field, *partitions: str) -> None:
    """Make the table of runs again, as another program may."""
    schema = pa.schema([column, ("namespace", pa.string()), ("date", pa.date32())])
    url = lake.storage.within(RUNS).url
    DeltaTable.create(url, Schema.from_arrow(schema), mode="overwrite", partition_by=[*partitions])


def rename_column(lake: Lake) -> None:
    """Raise the protocol as another program does that renames a column."""
    edit_log(lake, EVENTS, lambda each: each.get("protocol", {}).update(minReaderVersion=2))


def test_columns_that_an_older_lake_lacks_are_read_as_null_and_added_by_the_next_refresh(
    lake: Lake,
) -> None:
    lacking = [(EVENTS, "priority"), (EVENTS, "run_versions"), (RUNS, "worker"), (RUNS, "due")]
    for table, column in lacking:
        remove_column(lake, table, column)
    older = Lake(lake.url)
    for table, column in lacking:
        opened = older.table(table)
        found = opened.read({each.partition for each in opened.all_files}, [column])
        assert found[column].to_pylist() == [None]
    new = {"priority": 7.0, "run_versions": ["v1"], "run_dues": [at(3)]}
    fill(older, event("b", run(2, 4, 5), **new))
    expected = {
        "priority": {"a": None, "b": 7.0}, "run_versions": {"a": None, "b": ["v1"]},
        "worker": {"a": "w1", "b": "w1"}, "due": {"a": None, "b": at(3)},
    }  # fmt: skip
    for table, column in lacking:
        assert column in columns(lake, table)
        assert {row.jid: row[column] for row in raw(lake, table)} == expected[column]
    assert check(older) == []


def test_archive_adds_missing_columns_to_an_older_lake(
    lake: Lake, client: Client, run_lake_command: RunLakeCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another archiver does so at the same time."""
    remove_column(lake, EVENTS, "priority")
    before(monkeypatch, OpenTable, "add_columns", lambda: Lake(lake.url, create=True))
    place = ("--namespace", client.namespace, "--lake", lake.url)
    code, _, err = run_lake_command("archive", "--url", client.url, *place)
    assert code == 0, err
    assert columns(lake, EVENTS) == set(TABLES[EVENTS].schema.names)


@pytest.mark.parametrize("table", [EVENTS, RUNS, LAST])
def test_a_newer_table_is_refused_before_redis_is_called_or_a_table_changed(
    lake: Lake, table: str, run_lake_command: RunLakeCommand
) -> None:
    lake.table(table).set_property("aioqless.version", "99")
    versions = {name: open_table(lake, name).version() for name in TABLES}
    unreachable = ("--url", "redis://127.0.0.1:1")
    code, out, err = run_lake_command("archive", *unreachable, "--lake", lake.url)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert f"({table} of version 99)" in err and "update aioqless" in err
    assert {name: open_table(lake, name).version() for name in TABLES} == versions


PARTITIONS = ("namespace", "date")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            lambda lake: replace_runs(lake, pa.field("jid", pa.int64()), *PARTITIONS),
            "column jid of silver/runs .* is long instead of string: delete its folder; "
            "`aioqless lake tables` makes it again",
        ),
        (
            lambda lake: replace_runs(lake, pa.field("tags", pa.string()), *PARTITIONS),
            "column tags of silver/runs .* is string instead of array",
        ),
        (
            lambda lake: replace_runs(lake, pa.field("jid", pa.string()), "date"),
            "silver/runs .* is partitioned by date instead of namespace, date",
        ),
        (
            rename_column,
            "bronze/events .* needs reader version 2 of Delta, .*: put back a copy of its folder",
        ),
    ],
)
def test_table_that_another_program_changed_too_much_is_refused(
    lake: Lake, change: Callable[[Lake], None], reason: str
) -> None:
    change(lake)
    with pytest.raises(LakeError, match=reason):
        Lake(lake.url, create=True)


def test_a_column_that_the_user_added_is_kept_with_its_values_in_other_days(lake: Lake) -> None:
    field = Field.from_arrow(pa.field("team", pa.string()))
    for table in (EVENTS, RUNS):
        opened = open_table(lake, table)
        opened.alter.add_columns([field])
        opened.update({"team": "'billing'"})
    fill(lake, *(event(jid, run(3, 4, 5), date=TOMORROW) for jid in "bc"))
    compact(lake)
    drop_payloads(lake, TOMORROW + timedelta(days=1))
    erase(lake, open_session, ["b"])
    for table in (EVENTS, RUNS):
        assert {row.jid: row.team for row in raw(lake, table)} == {"a": "billing", "c": None}
        assert lake.table(table).schema.names[-1] == "team"
    assert {row.data for row in raw(lake, EVENTS)} == {None}
    assert check(lake) == []


def test_tables_of_an_older_version_are_rebuilt_by_the_next_refresh(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another refresh does so at the same time."""
    lake.table("gold/klasses").set_property("aioqless.version", "0")
    lake.table(LAST).set_property("aioqless.tables", "of an older program")
    assert lake.table("gold/klasses").is_outdated
    versions = {name: open_table(lake, name).version() for name in DERIVED}
    before(monkeypatch, OpenTable, "set_property", lambda: refresh(Lake(lake.url), open_session))
    refresh(lake, open_session)
    assert not lake.table("gold/klasses").is_outdated
    changed = {name for name in DERIVED if open_table(lake, name).version() != versions[name]}
    assert changed == {*DERIVED} and check(lake) == []


def test_any_reader_of_delta_can_read_the_tables(whole: Lake) -> None:
    for name in TABLES:
        protocol = open_table(whole, name).protocol()
        assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)
        assert not protocol.reader_features and not protocol.writer_features
