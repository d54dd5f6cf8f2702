"""Pages: what each address shows. A view reads from the client and returns a Page.

overview.py   the overview; all queues
queue.py      one queue
job.py        one job; one recurring job
job_lists.py  jobs by a filter, tracked ones, tags
job_sets.py   job sets and workflows, and one set
klasses.py    what has run by klass, and of one of them
new_job.py    a form for a new job
failures.py   failure groups, and one of them
workers.py    workers, and one of them
recurring.py  recurring jobs
admin.py      configuration, Redis, the audit log
"""

from collections.abc import Mapping

from aioqless.contrib.dashboard.page_request import View
from aioqless.contrib.dashboard.pages import (
    admin,
    failures,
    job,
    job_lists,
    job_sets,
    klasses,
    new_job,
    overview,
    queue,
    recurring,
    workers,
)

PAGES: Mapping[str, View] = {
    "/": overview.show_overview, "/queues": overview.list_queues, "/queue": queue.show_queue,
    "/failures": failures.list_groups, "/group": failures.show_group, "/job": job.show_job,
    "/jobs": job_lists.list_jobs, "/tracked": job_lists.list_tracked, "/tags": job_lists.list_tags,
    "/sets": job_sets.list_sets, "/set": job_sets.show_set, "/classes": klasses.list_klasses,
    "/class": klasses.show_klass, "/new-job": new_job.show_form, "/workers": workers.list_workers,
    "/worker": workers.show_worker, "/recurring": recurring.list_recurring,
    "/recurring-job": job.show_recurring_job, "/config": admin.show_config,
    "/redis": admin.show_redis, "/audit-log": admin.show_audit_log,
}  # fmt: skip

__all__ = ["PAGES"]
