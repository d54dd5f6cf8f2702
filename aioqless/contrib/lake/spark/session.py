"""A Spark session: on what Java it runs, how it is set up, and what is said when it fails."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from aioqless.contrib.lake.spark.class_archive import archive_options, find_empty_folder
from aioqless.contrib.lake.spark_errors import find_reason
from aioqless.errors import AioqlessError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRACE = (
    "AIOQLESS_JAVA_LOG"  # error, warn, info: what Java says on stderr, which is nothing by default
)

NEEDED = {"spark.sql.session.timeZone": "UTC"}  # timestamps mean the same on every machine
USUAL = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",  # no Hive
    "spark.sql.execution.pyspark.binaryAsBytes": "true",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",  # the files are known
    # or it asks Java five times for each column that is named, where that was
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 2)),
}
LOCAL = {  # listens on loopback only
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
_OPTIONS = "spark.driver.extraJavaOptions"
_MEMORY = {"spark.driver.memory": f"{max(640, 256 * (os.cpu_count() or 2))}m"}  # tasks have it, too
# Compiling little and collecting in one thread is cheapest for some seconds of work.
_SMALL_JAVA = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_LARGE_JAVA = ("-XX:+UseSerialGC",)
_LOGGING = Path(__file__).with_name("log4j2.properties")
_PACKAGE = Path(__file__).resolve().parents[3]
_NOT_SHIPPED = {"__pycache__", "dashboard"}


def session(
    name: str = "aioqless",
    *,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    is_large: bool = False,
) -> SparkSession:
    """The Spark session of this process, or a new one; it can use the source `aioqless`.

    Args:
        name: The name of the application.
        master: Where Spark runs, `local[*]` unless given; `sc://host:port` is a Spark Connect
            server. Under spark-submit, and for a session that runs already, it is theirs.
        conf: Settings that take precedence over every default.
        is_large: Whether the work takes more than some seconds, for which Java compiles better.

    Raises:
        AioqlessError: Java is missing; the text says what to install.
    """
    from aioqless.contrib.lake.source import register

    spark = open_session(name, master=master, conf=conf, is_large=is_large)
    register(spark)
    return spark


def open_session(
    name: str,
    *,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    is_large: bool = False,
) -> SparkSession:
    """As `session`, but without the source, for which Spark starts a process."""
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    is_new = running is None
    with plainly():
        if running is None and not (master or "").startswith("sc://"):
            running = _start(name, master, conf or {}, is_large=is_large)
        else:
            if running is None:
                running = SparkSession.builder.appName(name).remote(master or "").getOrCreate()
            for key, value in {**NEEDED, **(conf or {})}.items():
                running.conf.set(key, value)
        if is_new:
            _ship_package(running)
    return running


def _start(
    name: str, master: str | None, conf: Mapping[str, str], *, is_large: bool
) -> SparkSession:
    """Start Spark, or join the one that spark-submit started."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    is_local = not is_submitted and (master or "local").startswith("local")
    builder = SparkSession.builder.appName(name)
    if not is_submitted or master:
        builder = builder.master(master or "local[*]")
    settings = {**USUAL, **(LOCAL if is_local else {}), **NEEDED}
    if is_local and not _has_configuration():
        settings |= _MEMORY
    settings |= conf
    if not is_submitted:
        settings[_OPTIONS] = " ".join(_java_options(conf.get(_OPTIONS), is_large=is_large))
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _has_configuration() -> bool:
    """Whether Spark is an installation of the user, with its own configuration."""
    return "SPARK_HOME" in os.environ or "SPARK_CONF_DIR" in os.environ


def _java_options(given: str | None, *, is_large: bool) -> Iterator[str]:
    """Yield the options of a new Java.

    Raises:
        AioqlessError: There is no Java.
    """
    java = find_java()
    if not _has_configuration():
        # An empty folder: one with files on the class path prevents an archive of classes.
        os.environ["SPARK_CONF_DIR"] = str(find_empty_folder())
        yield f"-Dlog4j2.configurationFile=file:{quote(str(_LOGGING))}"
        yield from archive_options(java, _SMALL_JAVA if not is_large else _LARGE_JAVA)
    if given is not None:
        yield given
    else:
        yield from _LARGE_JAVA if is_large else _SMALL_JAVA


def find_java() -> Path:
    """Return the program that runs Java.

    Raises:
        AioqlessError: There is none; the text says what to install.
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin" if home else None)
    if not found:
        raise AioqlessError(
            "Spark needs Java 17 or later, and there is none in "
            f"{f'JAVA_HOME ({home})' if home else 'PATH'}: install it, as by "
            "`sudo apt install openjdk-17-jre-headless` or `brew install openjdk@17`"
        )
    return Path(found).resolve()


def is_connect(spark: SparkSession) -> bool:
    """Whether a session is a client of a Spark Connect server."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def name_jobs(spark: SparkSession, text: str) -> None:
    """Give the next jobs of this thread a description in Spark's UI; a Connect server has none."""
    if not is_connect(spark):
        context = spark.sparkContext
        context.setJobDescription(text)
        for form in ("short", "long"):  # or Java walks its stack for the name of each RDD
            context.setLocalProperty(f"callSite.{form}", text)


def _ship_package(spark: SparkSession) -> None:
    """Send this package to executors, which have its dependencies, unless they run where it is."""
    if not is_connect(spark) and (spark.sparkContext.master or "").partition("[")[0] == "local":
        return
    folder = tempfile.mkdtemp(prefix="aioqless-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # later executors get it, too
    archive = Path(folder, "aioqless.zip")
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(_PACKAGE.rglob("*")):
            within = path.relative_to(_PACKAGE.parent)
            if path.is_file() and not _NOT_SHIPPED & set(within.parts):
                file.write(path, within)
    if is_connect(spark):
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
