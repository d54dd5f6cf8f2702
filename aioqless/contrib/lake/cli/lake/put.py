"""Puts a file of rows as jobs: lake put."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from aioqless.cli.connect import check_one_partition
from aioqless.cli.exit_codes import ROWS_REJECTED
from aioqless.cli.options import Namespace, Url

from .options import (
    Batch,
    Conf,
    DelayOfJobs,
    Format,
    KlassOfJobs,
    Master,
    MaxDepth,
    PriorityOfJobs,
    QueueOfJobs,
    Rejects,
    RetriesOfJobs,
    RowFile,
    Schema,
    TagsOfJobs,
)
from .shared import command, print_progress, spark_opener

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@command
def put(
    file: RowFile,
    queue: QueueOfJobs = None,
    klass: KlassOfJobs = None,
    priority: PriorityOfJobs = None,
    delay: DelayOfJobs = None,
    retries: RetriesOfJobs = None,
    tags: TagsOfJobs = None,
    batch: Batch = None,
    max_depth: MaxDepth = None,
    rejects: Rejects = None,
    format: Format = None,
    schema: Schema = None,
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
    open_session = spark_opener("put", master, conf, is_needed=True)
    assert open_session
    from aioqless.contrib.lake.row_files import read_rows

    given = {
        **{"url": url, "namespace": namespace, "queue": queue, "klass": klass},
        **{"priority": priority, "delay": delay, "retries": retries, "tags": tags, "batch": batch},
        **{"maxDepth": max_depth, "rejects": rejects, "dropNulls": "true"},
    }
    rows = read_rows(open_session(), file, kind=format, schema=schema)
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
