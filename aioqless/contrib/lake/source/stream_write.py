"""`df.writeStream.format("aioqless").start()`: each row of a stream becomes a job.

It has a file of its own because Spark 4.0 lacks what it imports.
"""

from __future__ import annotations

from pyspark.sql.datasource import DataSourceStreamArrowWriter

from aioqless.contrib.lake.source.write import JobWriter


class JobStreamWriter(JobWriter, DataSourceStreamArrowWriter):
    """Puts the rows of each batch as `JobWriter` does."""
