"""Puts a file of rows as jobs: lake put."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aioqless.cli.exit_codes import ROWS_REJECTED
from aioqless.cli.options import Namespace, Url
from aioqless.cli.partitions import check_one_partition

from .options import Conf, Master
from .shared import command, print_progress, spark_opener

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@command
def put(
    file: Annotated[
        str, typer.Argument(help="A file or folder of CSV, JSON (an object a line) or Parquet.")
    ],
    queue: Annotated[
        str | None, typer.Option(help="Queue of the jobs, unless the rows have a column queue.")
    ] = None,
    klass: Annotated[
        str | None, typer.Option(help="Klass of the jobs, unless the rows have a column klass.")
    ] = None,
    priority: Annotated[float | None, typer.Option(help="Lower runs sooner.")] = None,
    delay: Annotated[float | None, typer.Option(help="Seconds until they may run.")] = None,
    retries: Annotated[int | None, typer.Option(help="Maximum number of retries of each.")] = None,
    tags: Annotated[str | None, typer.Option(help="Separated by commas.")] = None,
    batch: Annotated[
        str | None,
        typer.Option(help="A name for this load: the same rows of another load are put again."),
    ] = None,
    max_depth: Annotated[
        int | None, typer.Option(help="Wait while a queue has this many jobs.")
    ] = None,
    rejects: Annotated[
        str | None, typer.Option(help="A folder for rows that can't be jobs, with the reasons.")
    ] = None,
    format: Annotated[
        str | None, typer.Option(help="csv, json or parquet; default: by the file's name.")
    ] = None,
    schema: Annotated[
        str | None, typer.Option(help="The columns, as in SQL: 'url string, size long'.")
    ] = None,
    master: Master = None,
    conf: Conf = None,
    url: Url = None,
    namespace: Namespace = "ql",
) -> None:
    """Put each row as a job.

    Rows that this command or a former run of it has put are not put again.

    Exit code 6: some rows were rejected, the others are jobs.
    """
    check_one_partition(namespace)
    open_session = spark_opener("put", master, conf)
    from aioqless.contrib.lake.row_files import read_rows
    from aioqless.contrib.lake.source import register

    given = {
        **{"url": url, "namespace": namespace, "queue": queue, "klass": klass},
        **{"priority": priority, "delay": delay, "retries": retries, "tags": tags, "batch": batch},
        **{"maxDepth": max_depth, "rejects": rejects, "dropNulls": "true"},
    }
    spark = open_session(0)
    register(spark)
    rows = read_rows(spark, file, kind=format, schema=schema)
    print_progress(f"putting the rows of {file}")
    counts = _write(rows, {name: str(each) for name, each in given.items() if each is not None})
    print(f"{counts['put']:,} put, {counts['existing']:,} existed, {counts['rejected']:,} rejected")
    if counts["rejected"]:
        print_progress(f"what was rejected, and why: {rejects}")
        raise typer.Exit(ROWS_REJECTED)


def _write(rows: DataFrame, options: dict[str, str]) -> dict[str, int]:
    """Write the rows; return how many were put, existed already, and were rejected."""
    with tempfile.TemporaryDirectory(prefix="aioqless-") as folder:
        file = Path(folder) / "counts.json"
        rows.write.format("aioqless").mode("append").options(**options, counts=str(file)).save()
        counts: dict[str, int] = json.loads(file.read_text("utf-8"))
        return counts
