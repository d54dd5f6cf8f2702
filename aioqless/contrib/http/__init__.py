"""HTTP, shared by the dashboard, the human-task API and the HTTP API.

json_api.py                   RequestRefused, Error: bodies, errors and headers of the APIs
openapi.py                    describe: their OpenAPI descriptions
sessions.py                   Session, Sessions: a signed cookie, a CSRF token, a record in Redis
origin_checks.py              where a request comes from
request_body.py               the body of a request
login_attempts.py             LoginAttempts: rate limits of logins
request_framing.py            FramingMiddleware: one length for each request
uvicorn_server.py             serve: an application as a process of its own
bounded_dict.py               BoundedDict
generated_commands.py         HttpCommands: the scripts in lua/
"""

from aioqless.errors import require_extra

with require_extra("web"):
    from aioqless.contrib.http.bounded_dict import BoundedDict
    from aioqless.contrib.http.generated_commands import HttpCommands
    from aioqless.contrib.http.origin_checks import (
        is_from_this_machine,
        is_loopback,
        is_of_same_origin,
    )
    from aioqless.contrib.http.request_body import read_body
    from aioqless.contrib.http.request_framing import FramingMiddleware
    from aioqless.contrib.http.sessions import Session, Sessions, digest

__all__ = [
    "BoundedDict", "FramingMiddleware", "HttpCommands", "Session", "Sessions", "digest",
    "is_from_this_machine", "is_loopback", "is_of_same_origin", "read_body",
]  # fmt: skip
