"""The Spark data source `aioqless`.

It reads jobs as a table, and writes rows as jobs.

source.py         the data source: which reader or writer a load or save gets
options.py        options of a load or a save
async_bridge.py   calls asynchronous clients from Spark's synchronous code
job_columns.py    fields of job hashes as columns
jobs.py           load("jobs")
row_mapping.py    maps rows to jobs
job_writer.py     puts jobs into their queues
write.py          df.write…save()
stream_write.py   df.writeStream…start()
"""

from aioqless.contrib.lake.source.source import AioqlessSource, register

__all__ = ["AioqlessSource", "register"]
