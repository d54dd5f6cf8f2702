"""HTTP, shared by the dashboard and the HTTP API with its routers for jobs and human tasks.

Who sent a request:
    identity.py               Identity, Role, Identify
    tokens.py                 Token, Tokens: secrets, of which only hashes are kept
    proxy_header.py           ProxyHeader: users that a reverse proxy has authenticated
    sessions.py               Session, Sessions: a signed cookie, a CSRF token
    identification.py         Identification: finds the identity, trades tokens for cookies
    origin_checks.py          where a request comes from
    refusal_log.py            RefusalLog: how often refusals are logged

The HTTP API, to which http_api and human_tasks contribute routers:
    api.py                    create_api: the application, and its OpenAPI description
    router.py                 Router, Operation, ApiRequest
    api_sessions.py           who sends requests; signing in and out
    json_api.py               RequestRefused, Error: bodies, errors and headers
    openapi.py                describe: the OpenAPI description

Requests and responses:
    request_body.py           the body of a request
    request_framing.py        FramingMiddleware: one length for each request
    uvicorn_server.py         serve: an application as a process of its own
    bounded_dict.py           BoundedDict
    cli/                      the command `aioqless token`
"""

from aioqless.errors import require_extra

with require_extra("web"):
    from aioqless.contrib.http.api import create_api
    from aioqless.contrib.http.bounded_dict import BoundedDict
    from aioqless.contrib.http.identification import Identification
    from aioqless.contrib.http.identity import Identify, Identity, IdentityRefused, Role
    from aioqless.contrib.http.origin_checks import (
        is_from_this_machine,
        is_loopback,
        is_of_same_origin,
    )
    from aioqless.contrib.http.proxy_header import ProxyHeader
    from aioqless.contrib.http.request_body import read_body
    from aioqless.contrib.http.request_framing import FramingMiddleware
    from aioqless.contrib.http.sessions import Session, Sessions
    from aioqless.contrib.http.tokens import Token, Tokens

__all__ = [
    "BoundedDict", "FramingMiddleware", "Identification", "Identify", "Identity",
    "IdentityRefused", "ProxyHeader", "Role", "Session", "Sessions", "Token", "Tokens",
    "create_api", "is_from_this_machine", "is_loopback", "is_of_same_origin", "read_body",
]  # fmt: skip
