"""`df.write.format("aioqless").mode("append").save()`: each row becomes a job."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from aioqless.client.put_sender import Backpressure
from aioqless.contrib.lake.source.async_bridge import call
from aioqless.contrib.lake.source.job_writer import PutCounts, put_rows
from aioqless.contrib.lake.source.options import SaveOptions
from aioqless.contrib.lake.source.row_mapping import RowMapping
from aioqless.runtime.log import log

REJECTS = pa.schema({"reason": pa.string(), "row": pa.string()})


@dataclass
class TaskResult(WriterCommitMessage):
    """What a task did with its rows."""

    counts: PutCounts


class JobWriter(DataSourceArrowWriter):
    """Puts rows as jobs, in tasks.

    Jobs that a task has put stay when it fails; when it is repeated, they exist already.
    """

    def __init__(self, options: SaveOptions, schema: pa.Schema) -> None:
        self._settings = options.client_settings()
        self._mapping = RowMapping.of(options, schema)
        self._options = options
        Backpressure(options.wait)  # checks the number

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskResult:
        """Put the rows of a task."""
        counts = call(
            self._settings, lambda client: put_rows(client, self._mapping, self._options, iterator)
        )
        return TaskResult(counts)

    def commit(
        self,
        messages: list[WriterCommitMessage | None],
        batchId: int | None = None,  # noqa: ARG002, N803 (pyspark's signature)
    ) -> None:
        """Store the rejected rows and the counts of all tasks."""
        tasks = [message.counts for message in messages if isinstance(message, TaskResult)]
        rejects = [(reject.reason, reject.row) for task in tasks for reject in task.rejects]
        if rejects and self._options.rejects:
            write_rejects(self._options.rejects, sorted(set(rejects)))
        counts = {
            "put": sum(task.put for task in tasks),
            "existing": sum(task.existing for task in tasks),
            "rejected": len(rejects),
        }
        if self._options.counts:
            Path(self._options.counts).write_text(json.dumps(counts), "utf-8")
        log.info("lake.rows_put", **counts)

    def abort(
        self,
        messages: list[WriterCommitMessage | None],
        batchId: int | None = None,  # noqa: ARG002, N803 (pyspark's signature)
    ) -> None:
        """Log how many jobs were put before the write failed."""
        tasks = [message.counts for message in messages if isinstance(message, TaskResult)]
        log.warning("lake.put_failed", put=sum(task.put for task in tasks))


def write_rejects(folder: str, rejects: list[tuple[str, str]]) -> None:
    """Add rejected rows to a folder of Parquet files.

    The same rows make the same file, so a repeated write adds nothing.
    """
    files, path = fs.FileSystem.from_uri(
        folder if "://" in folder else Path(folder).absolute().as_uri()
    )
    files.create_dir(path, recursive=True)
    name = hashlib.sha256(repr(rejects).encode()).hexdigest()[:16]
    reasons, rows = zip(*rejects, strict=True)
    pq.write_table(
        pa.table([reasons, rows], schema=REJECTS), f"{path}/.{name}.parquet", filesystem=files
    )
    files.move(f"{path}/.{name}.parquet", f"{path}/rejects-{name}.parquet")
