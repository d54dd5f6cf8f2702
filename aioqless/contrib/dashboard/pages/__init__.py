"""Pages: what each address shows. A view asks the client and returns a Page; nothing here changes
anything.

overview.py   the first page; queues
queue.py      one queue
jobs.py       one job; one recurring job
lists.py      completed, tracked, tags, search
failures.py   failure groups, and one of them
workers.py    workers, and one of them
keeping.py    configuration, Redis, the trail
"""

from collections.abc import Awaitable, Callable

from aioqless.contrib.dashboard.page_request import Asked, Page
from aioqless.contrib.dashboard.pages.admin import config, redis, trail
from aioqless.contrib.dashboard.pages.failures import failures, group
from aioqless.contrib.dashboard.pages.jobs import job, recurring_job
from aioqless.contrib.dashboard.pages.lists import completed, search, tag, tags, tracked
from aioqless.contrib.dashboard.pages.overview import overview, queues
from aioqless.contrib.dashboard.pages.queue import queue
from aioqless.contrib.dashboard.pages.recurring import recurring
from aioqless.contrib.dashboard.pages.workers import worker, workers

VIEWS: dict[str, Callable[[Asked], Awaitable[Page]]] = {
    "/": overview,
    "/queues": queues,
    "/queue": queue,
    "/failures": failures,
    "/group": group,
    "/job": job,
    "/completed": completed,
    "/tracked": tracked,
    "/tags": tags,
    "/tag": tag,
    "/search": search,
    "/workers": workers,
    "/worker": worker,
    "/recurring": recurring,
    "/recurring-job": recurring_job,
    "/config": config,
    "/redis": redis,
    "/trail": trail,
}

__all__ = ["VIEWS"]
