"""Pages: what each address shows. A view asks the client and returns a Page; nothing here changes anything.

overview.py   the first page; queues
queue.py      one queue
jobs.py       one job; one recurring job
lists.py      completed, tracked, tags, search
failures.py   failure groups, and one of them
workers.py    workers, and one of them
keeping.py    configuration, Redis, the trail
"""

from collections.abc import Awaitable, Callable

from aioqless.web.asked import Asked, Page
from aioqless.web.pages.failures import failures, group
from aioqless.web.pages.jobs import job, recurring_job
from aioqless.web.pages.keeping import config, redis, trail
from aioqless.web.pages.lists import completed, search, tag, tags, tracked
from aioqless.web.pages.overview import overview, queues
from aioqless.web.pages.queue import queue
from aioqless.web.pages.recurring import recurring
from aioqless.web.pages.workers import worker, workers

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
