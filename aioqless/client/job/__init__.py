"""Jobs in Redis.

job.py                Job               a job as it was read, and the methods that change it
state.py              JobState, ...     states, failures, progress and details of jobs
decoding.py           JobFields         decodes rows and records of jobs
summaries.py          JobSummary, ...   summaries of jobs, failure groups and workers for lists
backend.py            JobBackend        the collaborators of a job: store, codec, watcher, reporter
watcher.py            JobWatcher        waits for changes of jobs
progress_reporter.py  ProgressReporter  sends progress
temp_dir.py           TempDir           a temporary directory for one block
"""

from aioqless.client.job.job import Data, Job, StopReason
from aioqless.client.job.state import Failure, JobState, Progress

__all__ = ["Data", "Failure", "Job", "JobState", "Progress", "StopReason"]
