"""Recurring jobs: templates of which an instance is put at each due time.

recurring_job.py  RecurringJob       the template and its methods; `recur` makes one
schedule.py       Every, Schedule    an interval, or a cron expression
cron.py           Cron               the times of a cron expression
pages.py          iterate_recurring  lists recurring jobs a page at a time
"""

from aioqless.client.put_options import RecurOptions
from aioqless.client.recurring.recurring_job import RecurringJob, recur

__all__ = ["RecurOptions", "RecurringJob", "recur"]
