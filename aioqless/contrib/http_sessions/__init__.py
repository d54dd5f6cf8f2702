"""Sessions, origin checks and limits of logins, shared by the dashboard and the human-task API.

sessions.py         Session, Sessions: a signed cookie, a CSRF token, a record in Redis
origin_checks.py    where a request comes from
request_body.py     the body of a request
login_attempts.py   LoginAttempts: rate limits of logins
request_framing.py  FramingMiddleware: one length for each request
bounded_dict.py     BoundedDict
commands.py         HttpSessionsCommands: the scripts in lua/
"""

from aioqless.errors import require_extra

with require_extra("web"):
    from aioqless.contrib.http_sessions.bounded_dict import BoundedDict
    from aioqless.contrib.http_sessions.commands import HttpSessionsCommands
    from aioqless.contrib.http_sessions.origin_checks import (
        is_from_this_machine,
        is_loopback,
        is_of_same_origin,
    )
    from aioqless.contrib.http_sessions.request_body import read_body
    from aioqless.contrib.http_sessions.request_framing import FramingMiddleware
    from aioqless.contrib.http_sessions.sessions import Session, Sessions, digest

__all__ = [
    "BoundedDict",
    "FramingMiddleware",
    "HttpSessionsCommands",
    "Session",
    "Sessions",
    "digest",
    "is_from_this_machine",
    "is_loopback",
    "is_of_same_origin",
    "read_body",
]
