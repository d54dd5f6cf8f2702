"""The lake's folders: what is where, and that a change is whole whenever somebody looks, and
whenever it is killed."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

import pytest
from pyspark.sql.types import StructType

from aioqless.contrib.lake import transaction
from aioqless.contrib.lake.lake import Lake, LakeError, Partition
from aioqless.contrib.lake.schema import TABLES, Table
from aioqless.contrib.lake.transaction import Changes, changing

TODAY = Partition("silver/jobs", "ql", date(2026, 11, 21))
FILES = 3

# Replaces a partition over and over by the next generation of its files, until it is killed.
REPLACING = """
import sys, itertools
from datetime import date
from aioqless.contrib.lake import transaction as module
from aioqless.contrib.lake.lake import Lake, Partition

if sys.argv[2] == "without":
    module._swapped = lambda *_: False
lake = Lake(sys.argv[1])
partition = Partition("silver/jobs", "ql", date(2026, 11, 21))
with module.changing(lake, "tables") as changes:
    for generation in itertools.count(int(sys.argv[3])):
        folder = changes.folder()
        folder.mkdir()
        for number in range(3):
            (folder / f"part-{generation}-{number}.parquet").write_text(str(generation))
        changes.replace(partition, folder)
        print(generation, flush=True)
"""


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake", create=True)


def stage(changes: Changes, **files: str) -> Path:
    folder = changes.folder()
    folder.mkdir()
    for name, text in files.items():
        (folder / f"{name}.parquet").write_text(text)
        (folder / f".{name}.parquet.crc").write_text("what Hadoop leaves")
    return folder


def contents(lake: Lake, partition: Partition = TODAY) -> list[str]:
    return [file.read_text() for file in lake.files(partition)]


@pytest.mark.parametrize("swaps", [True, False], ids=["swapping", "without"])
def test_a_partition_is_replaced_whole_and_leaves_nothing_behind(
    lake: Lake, swaps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not swaps:
        monkeypatch.setattr(transaction, "_swapped", lambda *_: False)
    with changing(lake, "tables") as changes:
        changes.replace(TODAY, stage(changes, a="1", b="2"))
        assert contents(lake) == ["1", "2"]
        changes.replace(TODAY, stage(changes, c="3"))
    assert contents(lake) == ["3"]
    assert [each.name for each in (lake.root / TODAY.folder).iterdir()] == ["c.parquet"]
    assert not (lake.root / "staging" / "tables").exists()
    with changing(lake, "tables") as changes:
        changes.replace(TODAY, None)
    assert lake.partitions("silver/jobs") == []


def test_a_file_is_put_in_the_place_of_the_one_of_its_name(lake: Lake) -> None:
    with changing(lake, "archive ql") as changes:
        for text in ("first", "again"):
            staged = changes.folder()
            staged.write_text(text)
            changes.put(staged, TODAY, "batch=00000001.parquet")
    assert contents(lake) == ["again"]


@pytest.mark.parametrize("way", ["swapping", "without"])
def test_whenever_it_is_killed_a_partition_is_of_one_generation(lake: Lake, way: str) -> None:
    chance = random.Random(7)
    for life in range(6):
        with subprocess.Popen(
            [sys.executable, "-c", REPLACING, str(lake.root), way, str(life * 100_000)],
            stdout=subprocess.PIPE,
        ) as child:
            assert child.stdout and child.stdout.readline()
            deadline = time.monotonic() + chance.uniform(0, 0.05)
            while time.monotonic() < deadline:
                assert way == "without" or len(lake.files(TODAY)) == FILES
            child.kill()
        with changing(lake, "tables"):
            pass
        assert len(contents(lake)) == FILES and len(set(contents(lake))) == 1
        assert int(contents(lake)[0]) >= life * 100_000


def test_two_processes_do_not_do_the_same_work_at_once_but_different_work(lake: Lake) -> None:
    with changing(lake, "tables"), changing(lake, "archive ql"):
        told = subprocess.run(
            [sys.executable, "-c", REPLACING, str(lake.root), "swapping", "1"],
            capture_output=True,
            text=True,
            check=False,
        ).stderr
    assert "is at work on tables of" in told and "LakeError" in told


@pytest.mark.parametrize(
    "namespace", ["ql", "{billing}", "a/b", "007", "Größe %41", "x=y", "\\", "a b+c"]
)
def test_any_name_of_a_namespace_is_a_folder_and_read_from_it_again(
    lake: Lake, namespace: str
) -> None:
    partition = Partition("bronze/events", namespace, date(2026, 1, 2))
    with changing(lake, f"archive {namespace}") as changes:
        changes.replace(partition, stage(changes, a="1"))
    assert (
        lake.partitions("bronze/events")
        == lake.partitions("bronze/events", namespace)
        == [partition]
    )
    assert contents(lake, partition) == ["1"]


def test_a_folder_that_is_none_of_ours_is_not_made_a_lake(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(LakeError, match=r"not empty: it has 'thesis.txt'"):
        Lake(tmp_path, create=True)
    with pytest.raises(LakeError, match="there is no lake"):
        Lake(tmp_path / "elsewhere")


def test_a_newer_lake_is_refused_and_tables_of_an_older_version_are_named(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Lake(lake.root).outdated() == []
    monkeypatch.setitem(TABLES, "gold/times", Table(2, StructType()))
    older = Lake(lake.root)
    assert older.outdated() == ["gold/times"]
    older.updated("gold/times")
    assert Lake(lake.root).outdated() == []
    monkeypatch.setitem(TABLES, "gold/times", Table(1, StructType()))
    with pytest.raises(LakeError, match=r"a newer aioqless wrote the lake .*gold/times 2"):
        Lake(lake.root)


@pytest.mark.parametrize(
    "text", ["", "[]", json.dumps({"format": 1}), '{"format": 1, "tables": 3}']
)
def test_a_lake_whose_description_is_damaged_is_refused(lake: Lake, text: str) -> None:
    (lake.root / "lake.json").write_text(text)
    with pytest.raises(LakeError, match=r"lake\.json can't be read"):
        Lake(lake.root)
