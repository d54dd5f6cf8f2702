"""Jobs over HTTP, for programs in other languages and for browsers (`pip install "aioqless[web]"`).

grant.py           Grant                   who may put and see which jobs
schemas.py         types of requests and responses
handler_types.py   HandlerTypes            the types that a handler adds to these
job_request.py     JobRequest              one request: its token, body, query and key
operations.py      OPERATIONS              what clients can request
app.py             create_api              the application, and its OpenAPI description
cli/               the command `aioqless api`
"""

from aioqless.errors import require_extra

with require_extra("web"):
    from aioqless.contrib.http_api.app import create_api

__all__ = ["create_api"]
