"""Archives of classes: one for each installation of Spark, and none that nothing uses."""

from __future__ import annotations

import atexit
import os
import time
from pathlib import Path

import pytest

from aioqless.contrib.lake.spark.class_archive import archive_options


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return a Java that has archives, with a cache of its own."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "modules").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(atexit, "register", lambda *_: None)
    return tmp_path / "bin" / "java"


def test_installations_of_spark_have_archives_of_their_own(
    java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def options_of(home: str) -> list[str]:
        monkeypatch.setenv("SPARK_HOME", home)
        return archive_options(java, ())

    # Java ignores an archive that was made for other jars, without a word.
    assert options_of("/opt/spark")[0].startswith("-XX:ArchiveClassesAtExit=")
    assert options_of("/opt/spark") == options_of("/opt/spark") != options_of("/srv/spark")


def test_a_new_archive_removes_those_that_are_unused_or_were_never_finished(
    java: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "aioqless"
    cache.mkdir()

    def make(name: str, *, hours: float) -> Path:
        archive = cache / name
        archive.touch()
        os.utime(archive, times=(time.time() - hours * 3600,) * 2)
        return archive

    kept = [make("spark-4.0.0-a.jsa", hours=24 * 29), make("spark-4.0.0-b.jsa.7", hours=0.5)]
    unused = [make("spark-4.0.0-c.jsa", hours=24 * 31), make("spark-4.0.0-d.jsa.7", hours=2)]
    archive_options(java, ())
    assert [each.exists() for each in (*kept, *unused)] == [True, True, False, False]
