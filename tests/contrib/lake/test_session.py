"""The errors of Spark, and of a machine without Java."""

from __future__ import annotations

import pytest

from aioqless.contrib.lake.session import find_reason, session
from aioqless.errors import AioqlessError


def test_a_machine_without_java_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    with pytest.raises(AioqlessError, match="Spark needs Java 17 or later"):
        session()


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
