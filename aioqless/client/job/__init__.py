"""Jobs that are in Redis.

record.py      JobState, Progress   what Redis keeps of a job, as Python values
glance.py      Glance               what lists show of jobs, of failure groups and of workers
reading.py     ReadJob              a job as it was read
following.py   Followed             that, and what it offers to those who wait for its end, or tell how far it is
job.py         Job                  that, and the verbs that change it
services.py    Services              the collaborators of a job: store, codec, watcher, reporter
watcher.py     JobWatcher           waits for changes of jobs
progress_reporter.py ProgressReporter  sends progress
scratch.py     Scratch              a directory for the time of one block
"""

from aioqless.client.job.job import Job
from aioqless.client.job.reading import Data, Reason
from aioqless.client.job.record import JobState, Progress

__all__ = ["Data", "Job", "JobState", "Progress", "Reason"]
