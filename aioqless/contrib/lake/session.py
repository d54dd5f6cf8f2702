"""A Spark session: on what Java it runs, how it is set up, and what is said when it fails."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from aioqless.errors import AioqlessError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRACE = (
    "AIOQLESS_JAVA_LOG"  # error, warn, info: what Java says on stderr, which is nothing by default
)

NEEDED = {"spark.sql.session.timeZone": "UTC"}  # timestamps mean the same on every machine
USUAL = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.pyspark.binaryAsBytes": "true",
    "spark.sql.files.ignoreMissingFiles": "false",
    # or it asks Java five times for each column that is named, where that was
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 2)),
}
LOCAL = {  # listens on loopback only
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
_PACKAGE = Path(__file__).resolve().parents[2]
_NOT_SHIPPED = {"__pycache__", "dashboard"}


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

    from aioqless.contrib.lake.source import register

    running = SparkSession.getActiveSession()
    is_new = running is None
    with plainly():
        if running is None and not (master or "").startswith("sc://"):
            running = _start(name, master, conf or {})
        else:
            if running is None:
                running = SparkSession.builder.appName(name).remote(master or "").getOrCreate()
            for key, value in {**NEEDED, **(conf or {})}.items():
                running.conf.set(key, value)
        if is_new:
            _ship_package(running)
    register(running)
    return running


def _start(name: str, master: str | None, conf: Mapping[str, str]) -> SparkSession:
    """Start Spark, or join the one that spark-submit started."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    is_local = not is_submitted and (master or "local").startswith("local")
    builder = SparkSession.builder.appName(name)
    if not is_submitted or master:
        builder = builder.master(master or "local[*]")
    for key, value in {**USUAL, **(LOCAL if is_local else {}), **NEEDED, **conf}.items():
        builder = builder.config(key, value)
    if not is_submitted:
        if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
            raise AioqlessError(
                "Spark needs Java 17 or later, and there is none in JAVA_HOME or PATH: install it, "
                "as by `apt install openjdk-17-jre-headless` or `brew install openjdk@17`"
            )
        if "SPARK_HOME" not in os.environ:  # the user's installation has its own configuration
            os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).parent / "conf"))
    return builder.getOrCreate()


def _ship_package(spark: SparkSession) -> None:
    """Send this package to executors, which have its dependencies, unless they run where it is."""
    is_connect = type(spark).__module__.startswith("pyspark.sql.connect.")
    if not is_connect and (spark.sparkContext.master or "").partition("[")[0] == "local":
        return
    archive = Path(tempfile.mkdtemp(prefix="aioqless-")) / "aioqless.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(_PACKAGE.rglob("*")):
            within = path.relative_to(_PACKAGE.parent)
            if path.is_file() and not _NOT_SHIPPED & set(within.parts):
                file.write(path, within)
    if is_connect:
        spark.addArtifacts(str(archive), pyfile=True)
    else:
        spark.sparkContext.addPyFile(str(archive))


@contextmanager
def plainly() -> Iterator[None]:
    """Raise errors of Spark as AioqlessError, in one line.

    With AIOQLESS_JAVA_LOG in the environment they stay as they are.
    """
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("pyspark", "py4j") or os.environ.get(
            TRACE
        ):
            raise
        raise AioqlessError(explain(error)) from None


def explain(error: BaseException) -> str:
    """Return what went wrong in Spark, in one line."""
    return f"{find_reason(str(error))} (AIOQLESS_JAVA_LOG=error shows what Spark says)"


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
