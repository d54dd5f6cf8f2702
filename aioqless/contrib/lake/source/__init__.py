"""The Spark data source `aioqless`: jobs and all that surrounds them as tables, the archive as a
stream, rows as jobs.

options.py        options of a load or a save
async_bridge.py   rows from asynchronous iterators
job_scan.py       finds jobs, in partitions
job_columns.py    what Redis keeps of them as columns
jobs.py           load("jobs")
summaries.py      load("queues") and others that are small
events.py         the archive's stream from one offset to another
event_columns.py  its entries as columns
stream.py         readStream…load("events")
row_mapping.py    maps rows to jobs
job_writer.py     puts jobs into their queues
write.py          df.write…save()
source.py         which of these a load is for
"""

from aioqless.contrib.lake.source.source import AioqlessSource, register

__all__ = ["AioqlessSource", "register"]
