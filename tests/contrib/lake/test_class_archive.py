"""Java ignores an archive of classes that was made for other jars, without a word."""

from __future__ import annotations

import atexit
from pathlib import Path

import pytest

from aioqless.contrib.lake.spark.class_archive import archive_options


def test_installations_of_spark_have_archives_of_their_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "modules").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(atexit, "register", lambda *_: None)

    def options_of(home: str) -> list[str]:
        monkeypatch.setenv("SPARK_HOME", home)
        return archive_options(tmp_path / "bin" / "java", ())

    assert options_of("/opt/spark")[0].startswith("-XX:ArchiveClassesAtExit=")
    assert options_of("/opt/spark") == options_of("/opt/spark") != options_of("/srv/spark")
