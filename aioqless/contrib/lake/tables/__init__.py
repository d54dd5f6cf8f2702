"""The tables: functions from DataFrame to DataFrame, one table a file. None reads or writes
anything; `refresh.py` does.

From events: `runs`, and by way of `stages` the `jobs`. From these, per day: `times`, `counts`,
`failures`, `throughput`, `paths`.

days.py        days and seconds from timestamps
groups.py      by what rows are grouped: each row becomes one for every grouping
aggregates.py  mergeable aggregates: moments, bins, a sketch for quantiles
bins.py        the bins of histograms
jobs.py        silver/jobs, and the stages in it
runs.py        silver/runs; which days they tell of
times.py       gold/times
counts.py      gold/counts
failures.py    gold/failures
throughput.py  gold/throughput
paths.py       gold/paths
"""

from aioqless.contrib.lake.tables.counts import counts
from aioqless.contrib.lake.tables.failures import failures
from aioqless.contrib.lake.tables.jobs import jobs, stages, stages_of
from aioqless.contrib.lake.tables.paths import paths
from aioqless.contrib.lake.tables.runs import days_told, runs
from aioqless.contrib.lake.tables.throughput import throughput
from aioqless.contrib.lake.tables.times import merged_times, times

__all__ = [
    "counts",
    "days_told",
    "failures",
    "jobs",
    "merged_times",
    "paths",
    "runs",
    "stages",
    "stages_of",
    "throughput",
    "times",
]
