"""The tables of silver and gold: functions from Arrow table to Arrow table, one table a file.

None reads or writes anything; `refresh.py` does. `runs` and `jobs` are made of events, and the
others of these. What is made of some events merges with what is made of others: `merge_…` of both
is what all events come to.

columns.py     times, lists and maps of Arrow columns; rows by group
groups.py      the groupings of gold tables
aggregates.py  cells: moments, histograms and quantiles of many numbers
bins.py        the bins of histograms
runs.py        silver/runs
jobs.py        silver/jobs
times.py       gold/times
counts.py      gold/counts
failures.py    gold/failures
throughput.py  gold/throughput
paths.py       gold/paths
"""

from aioqless.contrib.lake.tables.counts import counts, merge_counts
from aioqless.contrib.lake.tables.failures import failures, merge_failures
from aioqless.contrib.lake.tables.jobs import jobs, merge_jobs
from aioqless.contrib.lake.tables.paths import paths
from aioqless.contrib.lake.tables.runs import runs
from aioqless.contrib.lake.tables.throughput import merge_throughput, throughput
from aioqless.contrib.lake.tables.times import merge_times, merged_times, times

__all__ = [
    "counts",
    "failures",
    "jobs",
    "merge_counts",
    "merge_failures",
    "merge_jobs",
    "merge_throughput",
    "merge_times",
    "merged_times",
    "paths",
    "runs",
    "throughput",
    "times",
]
