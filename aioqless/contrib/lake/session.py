"""A Spark session: on what Java it runs, how it is set up, and what is said when it fails."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from aioqless.contrib.lake.ship_package import ship
from aioqless.contrib.lake.spark_env import prepared
from aioqless.errors import AioqlessError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRACE = (
    "AIOQLESS_JAVA_LOG"  # error, warn, info: what Java says on stderr, which is nothing by default
)

NEEDED = {"spark.sql.session.timeZone": "UTC"}  # timestamps mean the same on every machine
USUAL = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.pyspark.binaryAsBytes": "true",
    "spark.sql.files.ignoreMissingFiles": "false",
    # or it asks Java five times for each column that is named, where that was
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
CONNECT = "sc://"
LOCAL = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def session(
    name: str = "aioqless", *, master: str | None = None, conf: Mapping[str, str] | None = None
) -> SparkSession:
    """The Spark session of this process, or a new one that can use the source `aioqless`.

    Args:
        name: The name of the application.
        master: Where Spark runs, `local[*]` unless given; `sc://host:port` is a Spark Connect
            server. Under spark-submit, and for a session that runs already, it is theirs.
        conf: Settings that take precedence over every default.

    Raises:
        AioqlessError: Java is missing; the text says what to install.
    """
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is None:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        with plainly():
            if (master or "").startswith(CONNECT):
                running = _connect(name, master or "", conf or {})
            else:
                running = _start(name, master, conf or {})
            ship(running)
    else:
        for key, value in {**NEEDED, **(conf or {})}.items():
            running.conf.set(key, value)
    from aioqless.contrib.lake.source import register

    register(running)
    return running


def _start(name: str, master: str | None, conf: Mapping[str, str]) -> SparkSession:
    """Start Spark, or join the one that spark-submit started."""
    from pyspark.sql import SparkSession

    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    builder = SparkSession.builder.appName(name)
    if not submitted or master:
        builder = builder.master(master or "local[*]")
    usual = {**USUAL, **({} if submitted else _at_home(master))}
    for key, value in {**usual, **NEEDED, **conf}.items():
        builder = builder.config(key, value)
    with nullcontext() if submitted else prepared(here=_is_here(master)):
        return builder.getOrCreate()


def _connect(name: str, url: str, conf: Mapping[str, str]) -> SparkSession:
    """Connect to a Spark Connect server, which needs no Java here."""
    from pyspark.sql import SparkSession

    connected = SparkSession.builder.appName(name).remote(url).getOrCreate()
    for key, value in {**NEEDED, **conf}.items():
        connected.conf.set(key, value)
    return connected


@contextmanager
def plainly() -> Iterator[None]:
    """Raise errors of Spark as AioqlessError, in one line.

    With AIOQLESS_JAVA_LOG in the environment they stay as they are.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        if os.environ.get(TRACE):
            raise
        raise AioqlessError(reason_of(str(error))) from None


def reason_of(trace: str) -> str:
    """Return what went wrong in a trace of Spark.

    That is the innermost error of Python, else the messages that have a code, else the first line.
    """
    lines = [line.strip() for line in trace.splitlines() if line.strip()]
    named = [
        line
        for line in lines
        if re.match(
            r"(?:[a-z_]\w*\.)+[A-Z]\w*(?:Error|Full|Exception|Job|Data|Argument)?: "
            r"|[A-Z]\w*Error: ",
            line,
        )
    ]
    python = [line for line in named if not re.match(r"(?:java|org|scala|py4j)\.", line)]
    coded = re.findall(
        r"\[[A-Z_]+(?:\.[A-Z_]+)*\] (.*?)(?: SQLSTATE: \w+|$)", "\n".join(lines[1:]), re.MULTILINE
    )
    head = " ".join(dict.fromkeys(coded[:1] + coded[-1:])) or (
        lines[0] if lines else "Spark failed and doesn't say why"
    )
    found = python[-1] if python else head
    found = re.sub(r"^(?:aioqless\.[\w.]+|[A-Z]\w*Error): ", "", found)
    return f"{found} (AIOQLESS_JAVA_LOG=error shows what Spark says)"


def _at_home(master: str | None) -> dict[str, str]:
    """Return settings for a session on this machine alone, which listens on loopback only."""
    wide = {"spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 2))}
    return {**LOCAL, **wide} if _is_here(master) else wide


def _is_here(master: str | None) -> bool:
    return (master or "local").startswith("local")
