"""Human tasks over HTTP, in JSON, for web pages of your own (`pip install "aioqless[web]"`).

schemas.py      types of requests and responses
operations.py   OPERATIONS      what clients can request
openapi.py      describe        the OpenAPI description
app.py          create_api      the application
"""

from aioqless.errors import require_extra

with require_extra("web"):
    from aioqless.contrib.human_tasks.api.app import create_api

__all__ = ["create_api"]
