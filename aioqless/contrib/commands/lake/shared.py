"""`aioqless pipeline`: what its commands share. They are in the files `pipeline_….py`, and pyspark
is imported when one of them runs."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from aioqless.cli.app import app
from aioqless.errors import AioqlessError, require_extra

pipeline = typer.Typer(
    no_args_is_help=True,
    help="What has run: into a lake of Parquet files, tables and a report of it. On Spark.",
)
app.add_typer(pipeline, name="pipeline")

LakeFolder = Annotated[
    Path, typer.Option("--lake", envvar="AIOQLESS_LAKE", help="The folder of the lake.")
]
Trace = Annotated[
    bool, typer.Option("--trace", help="Show the whole trace of an error, Java's too.")
]

LAKE = Path("lake")


@contextmanager
def plainly(trace: bool) -> Iterator[None]:
    """Let what goes wrong with Spark, or without it, be said in a line; `trace` lets it through as
    it is."""
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

        # Spark says it with a code before it and one behind it, which say nothing to who asked.
        raise AioqlessError(re.sub(r"^\[[\w.]+\] | SQLSTATE: \w+", "", told(str(error)))) from None


def tell(text: str) -> None:
    """Say how far it is to whoever watches; only results go to the standard output."""
    print(text, file=sys.stderr, flush=True)
