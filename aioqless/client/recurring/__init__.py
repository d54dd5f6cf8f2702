"""Jobs that come again and again.

cron.py        Cron           which times a cron expression means
schedules.py   Every          when instances come: by that, or whenever some seconds have passed
job.py         RecurringJob   the template of those instances; `recur` makes one
"""

from aioqless.client.put.options import RecurOptions
from aioqless.client.recurring.job import RecurringJob, recur

__all__ = ["RecurOptions", "RecurringJob", "recur"]
