"""The app of `aioqless lake`, and what its commands share.

pyspark is imported when one of them runs.
"""

from __future__ import annotations

import functools
import logging
import os
import re
import sys
import threading
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
    from aioqless.contrib.lake.refresh import OpenSession, Refreshed

Run = TypeVar("Run", bound=Callable[..., None])

lake = typer.Typer(no_args_is_help=True, help="Ended runs: a lake of Delta tables, and a report.")
app.add_typer(lake, name="lake", rich_help_panel=Section.RUN)

LAKE = "lake"
_LARGE = 200_000  # rows, for which Java compiles better
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
        from aioqless.contrib.lake.spark.session import explain

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
    name: str, master: str | None, conf: list[str] | None, *, is_large: bool = False
) -> OpenSession:
    """Return what starts Spark at its first call, for a number of rows.

    Args:
        name: The name of the command.
        master: Where Spark runs.
        conf: Settings, as key=value.
        is_large: Whether the work is long, whatever the number of rows.
    """
    settings = parse_conf(conf)
    if master is not None and not _MASTER.fullmatch(master):  # for which Java shows a trace
        raise typer.BadParameter(
            f"{master!r} is no place where Spark runs; there are local[*], spark://host:7077, "
            "yarn, k8s://host:443 and sc://host"
        )
    started: list[SparkSession] = []
    starting = threading.Lock()

    def start(rows: int) -> SparkSession:
        from aioqless.contrib.lake.spark.session import open_session

        with starting:
            if not started:
                started.append(
                    open_session(
                        f"aioqless lake {name}",
                        master=master,
                        conf=settings,
                        is_large=is_large or rows >= _LARGE,
                    )
                )
        return started[0]

    return start


def refresh_tables(
    lake: Lake, open_session: OpenSession | None = None, *, rebuilt: Container[date] = ()
) -> Refreshed:
    """Bring the tables up to date; Spark starts only if they lack events."""
    from aioqless.contrib.lake.refresh import refresh

    return refresh(
        lake, open_session or spark_opener("tables", None, None), print_progress, rebuilt=rebuilt
    )


def open_lake(url: str) -> Lake:
    """Return the lake."""
    from aioqless.contrib.lake.lake import Lake

    return Lake(url)


def print_age(opened: Lake) -> None:
    """Print how old the tables are, which a command has read."""
    from aioqless.contrib.lake.read.freshness import read_freshness

    for each in read_freshness(opened):
        behind = f"; {each.missing:,} are not in the tables yet" if each.missing else ""
        print_progress(f"{each.namespace}: events until {each.ended:%Y-%m-%d %H:%M} UTC{behind}")
