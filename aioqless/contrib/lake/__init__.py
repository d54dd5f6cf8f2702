"""The history of ended jobs: a lake of Delta tables, statistics and a report.

`pip install "aioqless[lake]"` brings what makes tables, `"aioqless[lake-read]"` what reads them.

schema.py    the tables: columns, descriptions, versions
storage.py   a folder or an object store's prefix
lake.py      the tables of a lake, made and opened
open_table.py  a table: its files, its rows, and commits by delta-rs
spark/       the pipeline: what Spark's tasks read, compute and write
spark_errors.py  what went wrong in Spark, in one line
row_files.py files of rows that are put as jobs
archiver.py  moves the archive's stream into the lake, each entry exactly once
batch.py     a batch of the stream, as ranges that tasks read
backlog.py   snapshots of the queues
period.py    days that options name
position.py  how far the events of a namespace are in the lake
event_log.py the archive's stream in Redis
event_columns.py entries of the stream as columns
source/      the data source `aioqless`: jobs as a table, rows as jobs
refresh.py   plans and commits the tables of the days that have new events
erasure.py   erases jobs and tags from rows
maintenance.py merges small files, deletes old days, erases jobs
read/        answers of DuckDB from finished tables: statistics, the report, checks, searches
"""

from aioqless.errors import require_extra

with require_extra("lake"):
    import pyarrow  # noqa: F401
