"""What is known of browsers that ask, for the dashboard and for people's desks alike.

sessions.py   Session, Sessions: a signed cookie, the token of its changes, a record in Redis
requests.py   where a request comes from, and what it carries
"""

from aioqless.errors import require_extra

with require_extra("web"):
    from aioqless.contrib.http_sessions.origin import (
        body_of,
        is_from_this_machine,
        is_loopback,
        is_of_same_origin,
    )
    from aioqless.contrib.http_sessions.sessions import Session, Sessions, digest

__all__ = [
    "Session",
    "Sessions",
    "body_of",
    "digest",
    "is_from_this_machine",
    "is_loopback",
    "is_of_same_origin",
]
