"""The app and the options that the commands of `aioqless pipeline` share.

pyspark is imported when one of them runs.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from aioqless.cli.app import Section, app
from aioqless.errors import AioqlessError, require_extra

pipeline = typer.Typer(
    no_args_is_help=True,
    help="Ended runs: a lake of Parquet files, tables and a report. Runs on Spark.",
)
app.add_typer(pipeline, name="pipeline", rich_help_panel=Section.RUN)

LakeFolder = Annotated[
    Path, typer.Option("--lake", envvar="AIOQLESS_LAKE", help="The folder of the lake.")
]
Trace = Annotated[
    bool, typer.Option("--trace", help="Show the whole traceback of an error, including Java's.")
]

LAKE = Path("lake")


@contextmanager
def shorten_errors(trace: bool) -> Iterator[None]:
    """Report errors of Spark, or its absence, in one line; with `trace`, leave them as they are."""
    logging.getLogger(
        "SQLQueryContextLogger"
    ).disabled = not trace  # by which pyspark writes Java's traces to stderr
    try:
        with require_extra("spark"):
            yield
    except (AioqlessError, typer.Exit, typer.Abort):
        raise
    except Exception as error:
        if trace or type(error).__module__.partition(".")[0] not in ("pyspark", "py4j"):
            raise
        from aioqless.contrib.lake.session import told

        # Spark puts codes before and after its message, which say nothing to users.
        raise AioqlessError(re.sub(r"^\[[\w.]+\] | SQLSTATE: \w+", "", told(str(error)))) from None


def print_progress(text: str) -> None:
    """Print progress on standard error; only results go to standard output."""
    print(text, file=sys.stderr, flush=True)
