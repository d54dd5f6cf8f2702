"""Human tasks over HTTP, in JSON, for web pages of your own (`pip install "aioqless[web]"`).

schemas.py      types of requests and responses
operations.py   OPERATIONS      what clients can request
task_router.py  task_router     all of them, for `aioqless.contrib.http.create_api`
"""

from aioqless.errors import require_extra

with require_extra("web"):
    from aioqless.contrib.human_tasks.api.task_router import task_router

__all__ = ["task_router"]
