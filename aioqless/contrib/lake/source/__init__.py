"""The Spark data source `aioqless`: jobs and all that surrounds them as tables, the archive as a
stream, rows as jobs.

options.py        what a load or a save is told
looping.py        rows one after the other from what is asynchronous
finding.py        which jobs there are, in pieces
job_columns.py    what Redis keeps of them as columns
jobs.py           load("jobs")
summaries.py      load("queues") and others that are small
events.py         the archive's stream from one offset to another
event_columns.py  its entries as columns
stream.py         readStream…load("events")
making.py         rows as jobs
putting.py        jobs into their queues
write.py          df.write…save()
source.py         which of these a load is for
"""

from aioqless.contrib.lake.source.source import AioqlessSource, register

__all__ = ["AioqlessSource", "register"]
