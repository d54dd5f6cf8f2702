"""Recurring jobs: templates of which an instance is put at each due time.

recurring_jobs.py  RecurringJobs    lists recurring jobs, and finds one by its jid
recurring_job.py   RecurringJob     the template and its methods; `recur` makes one
schedule.py        Every, Schedule  an interval, or a cron expression
cron.py            Cron             the times of a cron expression
"""

from aioqless.client.put_options import RecurOptions
from aioqless.client.recurring.recurring_job import RecurringJob, recur
from aioqless.client.recurring.recurring_jobs import RecurringJobs

__all__ = ["RecurOptions", "RecurringJob", "RecurringJobs", "recur"]
