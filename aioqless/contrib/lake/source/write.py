"""`df.write.format("aioqless").mode("append").save()`: each row becomes a job; in a stream, too."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from aioqless.contrib.lake.source.async_bridge import asked
from aioqless.contrib.lake.source.job_writer import OPTIONS as OF_PUTTING
from aioqless.contrib.lake.source.job_writer import Limits, Tally, put_rows
from aioqless.contrib.lake.source.options import Options
from aioqless.contrib.lake.source.row_mapping import OPTIONS as OF_ROWS
from aioqless.contrib.lake.source.row_mapping import Recipe
from aioqless.runtime.log import log

REJECTS = pa.schema({"reason": pa.string(), "row": pa.string()})


@dataclass
class Done(WriterCommitMessage):
    """What became of a task's rows."""

    tally: Tally


class JobWriter(DataSourceArrowWriter, DataSourceStreamArrowWriter):
    """Puts rows in tasks; what was put stays when a task fails, and is found there when it is tried
    again."""

    def __init__(self, options: Options, schema: pa.Schema) -> None:
        self._where = options.where()
        self._recipe = Recipe.of(options, schema)
        self._limits = Limits.of(options)
        self._rejects = options.text("rejects")
        self._counts = options.text("counts")

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Done:
        return Done(
            asked(
                self._where, lambda client: put_rows(client, self._recipe, self._limits, iterator)
            )
        )

    def commit(
        self, messages: list[WriterCommitMessage | None], batchId: int | None = None
    ) -> None:
        tallies = [message.tally for message in messages if isinstance(message, Done)]
        rejects = [(reject.reason, reject.row) for tally in tallies for reject in tally.rejects]
        if rejects and self._rejects:
            store(self._rejects, sorted(set(rejects)))
        counts = {
            "put": sum(each.put for each in tallies),
            "there": sum(each.there for each in tallies),
            "rejected": len(rejects),
        }
        if self._counts:
            Path(self._counts).write_text(json.dumps(counts), "utf-8")
        log.info("pipeline.put", **counts)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int | None = None) -> None:
        log.warning(
            "pipeline.put_failed",
            put=sum(message.tally.put for message in messages if isinstance(message, Done)),
        )


def store(folder: str, rejects: list[tuple[str, str]]) -> None:
    """Add rejects to a table of Parquet files. The same ones make the same file, so that a re-run
    adds nothing."""
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


OPTIONS = (*OF_ROWS, *OF_PUTTING, "counts")
