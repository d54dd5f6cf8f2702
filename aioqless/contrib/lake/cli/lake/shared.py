"""The app and the options that the commands of `aioqless lake` share.

pyspark is imported when one of them runs.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
from collections.abc import Container, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from aioqless.cli.app import Section, app
from aioqless.errors import AioqlessError, require_extra

if TYPE_CHECKING:
    from datetime import date

    from pyspark.sql import SparkSession

    from aioqless.contrib.lake.lake import Lake
    from aioqless.contrib.lake.refresh import Refreshed

lake = typer.Typer(
    no_args_is_help=True, help="Ended runs: a lake of Delta tables, and a report. Runs on Spark."
)
app.add_typer(lake, name="lake", rich_help_panel=Section.RUN)

LakeUrl = Annotated[
    str,
    typer.Option(
        "--lake",
        envvar="AIOQLESS_LAKE",
        help="The lake: a folder, or a URL such as s3://bucket/prefix.",
    ),
]
Master = Annotated[
    str | None,
    typer.Option(help="Where Spark runs, such as spark://host:7077 or sc://host; default: here."),
]
Conf = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark. Repeatable."),
]
Trace = Annotated[
    bool, typer.Option("--trace", help="Show the whole traceback of an error, including Java's.")
]

OneNamespace = Annotated[
    str | None, typer.Option("--of", help="Only this namespace, with its partitions; default: all.")
]

LAKE = "lake"
_MASTER = re.compile(
    r"local(\[(\*|\d+)(,\d+)?\])?|local-cluster\[\d+,\d+,\d+\]|yarn|(spark|k8s|sc)://[^\s/].*"
)


@contextmanager
def shorten_errors(trace: bool) -> Iterator[None]:
    """Report errors of Spark, or its absence, in one line; with `trace`, leave them as they are."""
    logging.getLogger(
        "SQLQueryContextLogger"
    ).disabled = not trace  # by which pyspark writes Java's traces to stderr
    if not trace:  # delta-rs would log each attempt to find credentials before the error says so
        os.environ.setdefault("RUST_LOG", "off")
    try:
        with require_extra("lake"):
            yield
    except (AioqlessError, typer.Exit, typer.Abort):
        raise
    except Exception as error:
        program = type(error).__module__.partition(".")[0]
        if program in ("duckdb", "_duckdb"):
            told = str(error).partition("\n\nLINE ")[0]  # without the query and where it is wrong
            raise AioqlessError(" ".join(told.split())) from None
        if trace or program not in ("pyspark", "py4j"):
            raise
        from aioqless.contrib.lake.session import explain

        raise AioqlessError(explain(error)) from None


def print_progress(text: str) -> None:
    """Print progress on standard error; only results go to standard output."""
    print(text, file=sys.stderr, flush=True)


def parse_conf(settings: list[str] | None) -> dict[str, str]:
    """Return settings of Spark that were given as key=value."""
    conf = {}
    for setting in settings or ():
        key, separator, value = setting.partition("=")
        if not separator or not key.startswith("spark."):
            raise typer.BadParameter(f"{setting!r} is not of the form spark.key=value")
        if key.endswith(".memory") and not re.fullmatch(r"[1-9]\d*[kmgt]b?", value, re.IGNORECASE):
            raise typer.BadParameter(f"{setting!r} names no size of memory, such as 4g or 512m")
        conf[key] = value
    return conf


def namespaces_of(namespace: str, partitions: int | None) -> tuple[str, ...]:
    """Return the namespaces in Redis: those of the partitions, if there are some."""
    if partitions is None:
        return (namespace,)
    from aioqless.contrib.partitions.routing import check_count, name_partitions

    return name_partitions(namespace, check_count(partitions))


class Sessions:
    """Starts Spark when a command needs it for the first time."""

    def __init__(
        self, command: str, master: str | None = None, conf: list[str] | None = None
    ) -> None:
        if master is not None and not _MASTER.fullmatch(master):  # for which Java shows a trace
            raise typer.BadParameter(
                f"{master!r} is no place where Spark runs; there are local[*], spark://host:7077, "
                "yarn, k8s://host:443 and sc://host"
            )
        self._name = f"aioqless lake {command}"
        self._master = master
        self._conf = parse_conf(conf)
        self._session: SparkSession | None = None
        self._starting = threading.Lock()

    @property
    def is_wanted(self) -> bool:
        """Whether Spark is to do all of the work: its place was named, or spark-submit runs it."""
        return self._master is not None or "PYSPARK_GATEWAY_PORT" in os.environ

    def open(self) -> SparkSession:
        """Return the session."""
        from aioqless.contrib.lake.session import session

        with self._starting:  # archivers of several partitions share it
            if self._session is None:
                self._session = session(self._name, master=self._master, conf=self._conf)
            return self._session


def refresh_tables(
    lake: Lake, sessions: Sessions | None = None, *, rebuilt: Container[date] = ()
) -> Refreshed:
    """Bring the tables up to date, with Spark where it is wanted or there is much to do."""
    from aioqless.contrib.lake.refresh import LOCAL_EVENTS, refresh

    sessions = sessions or Sessions("tables")
    local = 0 if sessions.is_wanted else LOCAL_EVENTS
    return refresh(lake, sessions.open, print_progress, rebuilt=rebuilt, local_events=local)


@contextmanager
def open_lake(url: str, trace: bool, fresh: bool = False) -> Iterator[Lake]:
    """Yield the lake, updated first if that is asked for."""
    with shorten_errors(trace):
        from aioqless.contrib.lake.lake import Lake

        opened = Lake(url)
        if fresh:
            from aioqless.contrib.lake.snapshot import ConcurrentCommit

            try:
                refresh_tables(opened)
            except ConcurrentCommit as error:
                print_progress(f"the tables are shown as they are: {error}")
        yield opened
