"""Jobs in Redis.

job.py                Job               a job that runs, as its handler has it
record.py             JobRecord         a job as it was read, and what an operator does with it
stored_job.py         StoredJob         what both have
run.py                JobRun            a job as the holder of its lock has it; workers own it
reading.py                              reads jobs, results and failures
state.py              JobState, ...     states, failures, progress and details of jobs
decoding.py           JobFields         decodes rows and records of jobs
summaries.py          JobSummary, ...   summaries of jobs, failure groups and workers for lists
backend.py            JobBackend        the collaborators of a job: store, codec, watcher, reporter
watcher.py            JobWatcher        waits for changes of jobs
progress_reporter.py  ProgressReporter  sends progress
temp_dir.py           TempDir           a temporary directory for one block
"""

from aioqless.client.job.job import Data, Job
from aioqless.client.job.record import JobRecord
from aioqless.client.job.run import JobRun, StopReason
from aioqless.client.job.state import Failure, JobState, Progress
from aioqless.client.job.stored_job import StoredJob

__all__ = [
    "Data",
    "Failure",
    "Job",
    "JobRecord",
    "JobRun",
    "JobState",
    "Progress",
    "StopReason",
    "StoredJob",
]
