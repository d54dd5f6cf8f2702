"""The Spark data source `aioqless`: jobs and all that surrounds them as tables, the archive as a stream, rows as jobs.

options.py        what a load or a save is told
looping.py        rows one after the other from what is asynchronous
events.py         the archive's stream from one offset to another
event_columns.py  its entries as columns
stream.py         readStream…load("events")
source.py         which of these a load is for
"""

from aioqless.pipeline.source.source import AioqlessSource, register

__all__ = ["AioqlessSource", "register"]
