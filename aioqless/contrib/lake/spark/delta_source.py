"""Files of a table as rows: those of the version that the driver has opened.

Spark reads files of this machine by itself. Files of an object store are read through delta-rs,
which needs no jar, by a Python data source; the tasks get their names.
"""

from __future__ import annotations

import base64
import pickle
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from aioqless.contrib.lake.open_table import AddedFile, DataFile, OpenTable, conform
from aioqless.contrib.lake.schema import PARTITION_COLUMNS
from aioqless.contrib.lake.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROWS: Final = 65_536  # of a batch
_OPENING: Final = 2**16  # bytes that could be read while a file is opened


def read_files(
    spark: SparkSession,
    table: OpenTable,
    files: Sequence[DataFile | AddedFile],
    columns: Sequence[str],
    task_bytes: int,
) -> DataFrame:
    """Return some columns of the rows of files.

    Args:
        spark: The session.
        table: The table of the files.
        files: At least one.
        columns: The names.
        task_bytes: The size of the files that a task reads, about.
    """
    declared, storage = table.schema, table.storage
    schema = pa.schema([declared.field(name) for name in columns])
    if storage.is_local and not re.search(r"[{}*?]", storage.url):  # in which Spark sees patterns
        spark.conf.set("spark.sql.files.maxPartitionBytes", str(task_bytes))
        spark.conf.set("spark.sql.files.openCostInBytes", str(_OPENING))
        return (
            spark.read.schema(from_arrow_schema(schema, prefer_timestamp_ntz=False))
            .option("basePath", f"file://{storage.url}")
            .parquet(*(f"file://{storage.url}/{each.path}" for each in files))
        )
    spark.dataSource.register(FilesSource)
    given = base64.b64encode(pickle.dumps((storage, schema, _pack(files, task_bytes))))
    return spark.read.format(FilesSource.name()).option("given", given.decode()).load()


def _pack(files: Sequence[DataFile | AddedFile], size: int) -> list[list[tuple[str, ...]]]:
    """Divide files into lists of about a size, each of neighboring days."""
    packs, total = [list[tuple[str, ...]]()], 0
    for each in sorted(files, key=lambda each: (each.namespace, each.date, each.path)):
        if packs[-1] and total + each.size > size:
            packs.append([])
            total = 0
        packs[-1].append((each.path, each.namespace, each.date.isoformat()))
        total += each.size + _OPENING
    return packs


class FilesSource(DataSource):
    """Parquet files of a table that the option `given` names."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "aioqless-files"

    def schema(self) -> StructType:
        """Return the columns that were asked for."""
        _, schema, _ = self._given()
        return from_arrow_schema(schema, prefer_timestamp_ntz=False)

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 (pyspark's signature)
        """Return the reader."""
        return FilesReader(*self._given())

    def _given(self) -> tuple[Storage, pa.Schema, list[list[tuple[str, ...]]]]:
        given: tuple[Storage, pa.Schema, list[list[tuple[str, ...]]]] = pickle.loads(
            base64.b64decode(self.options["given"])
        )
        return given


class FilesReader(DataSourceReader):
    """Reads files in tasks, a list of them in each."""

    def __init__(
        self, storage: Storage, schema: pa.Schema, packs: list[list[tuple[str, ...]]]
    ) -> None:
        self._storage = storage
        self._schema = schema
        self._packs = packs

    def partitions(self) -> Sequence[InputPartition]:
        """Return a partition for each list of files."""
        return [InputPartition(each) for each in self._packs]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task."""
        filesystem = self._storage.filesystem
        stored = [name for name in self._schema.names if name not in PARTITION_COLUMNS]
        for path, *values in partition.value:
            constants = dict(zip(PARTITION_COLUMNS, values, strict=True))
            with pq.ParquetFile(path, filesystem=filesystem, pre_buffer=True) as file:
                known = [name for name in stored if name in file.schema_arrow.names]
                for batch in file.iter_batches(_ROWS, columns=known):
                    yield conform(batch, self._schema, constants)
