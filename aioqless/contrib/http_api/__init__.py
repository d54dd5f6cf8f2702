"""Jobs over HTTP, for programs in other languages and for browsers (`pip install "aioqless[web]"`).

grant.py           Grant                   who may put and see which jobs
schemas.py         types of requests and responses
handler_types.py   HandlerTypes            the types that a handler adds to these
job_request.py     JobRequest              one request on jobs
operations.py      OPERATIONS              what clients can request
job_router.py      job_router              all of them, for `aioqless.contrib.http.create_api`
cli/               the command `aioqless api`
"""

from aioqless.errors import require_extra

with require_extra("web"):
    from aioqless.contrib.http_api.job_router import job_router

__all__ = ["job_router"]
