"""The app of `aioqless lake`, and what its commands share.

pyspark is imported when one of them runs.
"""

from __future__ import annotations

import functools
import logging
import os
import re
import shutil
import sys
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from aioqless.cli.app import Section, app
from aioqless.errors import AioqlessError, require_extra

from .options import Trace

if TYPE_CHECKING:
    from datetime import date

    from pyspark.sql import SparkSession

    from aioqless.contrib.lake.lake import Lake
    from aioqless.contrib.lake.refresh import Refreshed
    from aioqless.contrib.lake.tasks import OpenSession

Run = TypeVar("Run", bound=Callable[..., None])

lake = typer.Typer(no_args_is_help=True, help="Ended runs: a lake of Delta tables, and a report.")
app.add_typer(lake, name="lake", rich_help_panel=Section.RUN)

LAKE = "lake"
_MASTER = re.compile(
    r"local(\[(\*|\d+)(,\d+)?\])?|local-cluster\[\d+,\d+,\d+\]|yarn|(spark|k8s|sc)://[^\s/].*"
)


def command(run: Run) -> Run:
    """Make a command of a function, and give it the option --trace: its errors aren't one line."""
    own = signature(run, eval_str=True)
    shown = Parameter("trace", Parameter.KEYWORD_ONLY, default=False, annotation=Trace)

    @functools.wraps(run)
    def run_command(*, trace: bool, **given: Any) -> None:
        with shorten_errors(trace):
            run(**given)

    parameters = [*own.parameters.values(), shown]
    vars(run_command)["__signature__"] = own.replace(parameters=parameters)
    lake.command(run.__name__)(run_command)
    return run


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


def spark_opener(
    name: str, master: str | None, conf: list[str] | None, *, is_needed: bool = False
) -> OpenSession | None:
    """Return what starts Spark at its first call.

    It is None unless Spark is needed, its place is named, or spark-submit runs the command.
    """
    settings = parse_conf(conf)
    if master is not None and not _MASTER.fullmatch(master):  # for which Java shows a trace
        raise typer.BadParameter(
            f"{master!r} is no place where Spark runs; there are local[*], spark://host:7077, "
            "yarn, k8s://host:443 and sc://host"
        )
    if not (is_needed or master or "PYSPARK_GATEWAY_PORT" in os.environ):
        return None

    @functools.cache
    def start() -> SparkSession:
        from aioqless.contrib.lake.session import session

        return session(f"aioqless lake {name}", master=master, conf=settings)

    return start


def refresh_tables(
    lake: Lake, open_session: OpenSession | None = None, *, rebuilt: Container[date] = ()
) -> Refreshed:
    """Bring the tables up to date; Spark computes many events here, too, if there is a Java."""
    from aioqless.contrib.lake.refresh import LOCAL_EVENTS, refresh

    local_events = 0 if open_session else LOCAL_EVENTS
    if open_session is None and (shutil.which("java") or "JAVA_HOME" in os.environ):
        open_session = spark_opener("tables", None, None, is_needed=True)
    return refresh(
        lake,
        print_progress,
        rebuilt=rebuilt,
        open_session=open_session,
        local_events=local_events,
    )


def open_lake(url: str, fresh: bool = False) -> Lake:
    """Return the lake, updated first if that is asked for."""
    from aioqless.contrib.lake.lake import Lake
    from aioqless.contrib.lake.open_table import ConcurrentCommit

    opened = Lake(url)
    if fresh:
        try:
            refresh_tables(opened)
        except ConcurrentCommit as error:
            print_progress(f"the tables are shown as they are: {error}")
    return opened
