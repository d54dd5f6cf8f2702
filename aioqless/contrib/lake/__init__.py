"""What becomes of jobs that ended: a lake of Parquet files, tables made of them by Spark,
statistics and a report.

The only package that imports pyspark; it needs `pip install "aioqless[spark]"`.

schema.py    the tables' columns, and their versions
lake.py      where the lake keeps what
transaction.py how files and partitions are replaced, each in one step
java.py      finding a Java
spark_env.py what Spark is started with here
session.py   a Spark session
ship_package.py what executors elsewhere need of us
row_files.py files of rows that are to be jobs
conf/        how much Java says
bronze.py    a batch of the archive as files
archiver.py  takes the archive's stream to the lake, each event once
source/      the data source `aioqless`: jobs as tables, the archive as a stream, rows as jobs
tables/      from DataFrame to DataFrame: what each table is made of
lake_reader.py  the lake's tables as DataFrames
refresh_state.py  which events the tables were made of
refresh.py   brings the tables up to date with the events
statistics.py how long jobs waited and ran and how they ended, over some days
compaction.py many small files become one
report/      a page of charts and tables
"""

from aioqless.errors import require_extra

with require_extra("spark"):
    import pyarrow  # noqa: F401
    import pyspark  # noqa: F401
