"""What went wrong, out of the long traces of Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from aioqless.contrib.lake.open_table import ConcurrentCommit


def find_reason(trace: str) -> str:
    """Return what went wrong in a trace of Spark.

    That is the innermost error of Python, else the messages that have a code, else the first line.
    """
    lines = [line.strip() for line in trace.splitlines() if line.strip()] or ["an unknown error"]
    python = re.findall(
        r"^\s*(?!java\.|org\.|scala\.|py4j\.)(?:(?:[a-z_]\w*\.)+[A-Z]\w*|[A-Z]\w*Error): (.*)",
        trace,
        re.MULTILINE,
    )
    if python:
        return str(python[-1])
    coded = re.findall(r"\[[A-Z_.]+\] (.*?)(?: SQLSTATE: \w+|$)", trace, re.MULTILINE)
    found = " ".join(dict.fromkeys(coded[:1] + coded[-1:])) or lines[0]
    return re.sub(r"^\[[\w.]+\] | SQLSTATE: \w+", "", found)


@contextmanager
def detect_deleted_files() -> Iterator[None]:
    """Raise ConcurrentCommit if Spark finds that a file isn't there any more."""
    try:
        yield
    except Exception as error:
        if not re.search(r"FILE_NOT_EXIST|PATH_NOT_FOUND|FileNotFound|NotFound", str(error)):
            raise
        raise ConcurrentCommit("another process deleted files of the lake meanwhile") from None
