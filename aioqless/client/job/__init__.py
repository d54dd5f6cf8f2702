"""Jobs in Redis.

record.py      JobState, Progress   what Redis keeps of a job, as Python values
summaries.py   Glance               summaries of jobs and failure groups for lists
reading.py     ReadJob              a job as it was read
following.py   Followed             adds waiting for its end, and reporting progress
job.py         Job                  adds the verbs that change it
services.py    Services             the collaborators of a job: store, codec, watcher, reporter
watcher.py     JobWatcher           waits for changes of jobs
progress_reporter.py ProgressReporter  sends progress
temp_dir.py                         a temporary directory for one block
"""

from aioqless.client.job.job import Job
from aioqless.client.job.reading import Data, Reason
from aioqless.client.job.record import JobState, Progress

__all__ = ["Data", "Job", "JobState", "Progress", "Reason"]
