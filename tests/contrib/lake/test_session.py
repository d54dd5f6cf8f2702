"""Finding a Java, and the errors of Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from aioqless.contrib.lake import java
from aioqless.contrib.lake.session import find_reason
from aioqless.errors import AioqlessError


@pytest.fixture(autouse=True)
def only_these_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(java, "USUAL_PLACES", (f"{tmp_path}/places/*",))


def install(home: Path, version: str) -> Path:
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2024-07-16' >&2\n")
    program.chmod(0o755)
    return home


def test_the_java_of_java_home_is_preferred(tmp_path: Path) -> None:
    home = install(tmp_path / "own", "21.0.2")
    install(tmp_path / "places" / "17", "17.0.1")
    assert java.find_java({"JAVA_HOME": str(home)}) == home


def test_a_java_in_path_is_found_where_it_is_installed(tmp_path: Path) -> None:
    home = install(tmp_path / "own", "17.0.12")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert java.find_java({"PATH": str(tmp_path / "bin")}) == home


def test_the_oldest_usable_java_of_the_usual_places_is_chosen(tmp_path: Path) -> None:
    for version in ("25", "21.0.2", "17.0.9", "11.0.1"):
        install(tmp_path / "places" / version, version)
    assert java.find_java({}).name == "17.0.9"


def test_unusable_javas_are_named_in_the_error(tmp_path: Path) -> None:
    old = install(tmp_path / "old", "1.8.0_402")
    with pytest.raises(AioqlessError, match=f"; {old} is version 8. Install one, "):
        java.find_java({"JAVA_HOME": str(old)})


def test_the_innermost_python_error_of_a_trace_is_shown() -> None:
    trace = """An error occurred while calling o47.load.
: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/x/source.py", line 7, in schema
    raise ValueError(f"there is no table here")
ValueError: there is no table 'x' here: load one of jobs
	at org.apache.spark.sql.errors.QueryCompilationErrors$.sourceError(Errors.scala:2)
java.io.IOException: something
"""
    assert find_reason(trace) == "there is no table 'x' here: load one of jobs"
