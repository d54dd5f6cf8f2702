"""JSON over HTTP: reads requests, refuses them, and maps errors to responses."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from aioqless import errors, validation
from aioqless.client import REDIS_UNAVAILABLE
from aioqless.contrib.http.identity import IdentityRefused
from aioqless.contrib.http.origin_checks import is_of_same_origin
from aioqless.contrib.http.request_body import read_body
from aioqless.contrib.http.request_framing import FramingMiddleware
from aioqless.contrib.http.tokens import bearer_of

JSON = "application/json"
MAX_BODY = 2 << 20  # bytes: an answer may be as large as the data of a job
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]


class Error(msgspec.Struct, omit_defaults=True):
    """Why a request was refused: a code, a message, and who holds the job if that is known."""

    code: str
    message: str
    by: str | None = None


class JobStatus(msgspec.Struct):
    """The job's state."""

    state: str


class RequestRefused(Exception):
    """A refused request: HTTP status, a code for programs, a message for people."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        by: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.error, self.headers = status, Error(code, message, by), headers or {}


def refusal_of(error: Exception) -> RequestRefused:  # noqa: PLR0911 (a table of errors)
    """Return how a request is refused that raised an error of aioqless or of Redis."""
    why = validation.to_text(error)
    match error:
        case errors.NoSuchJob():
            return RequestRefused(404, "gone", "The job no longer exists.")
        case errors.NoSuchSet():
            return RequestRefused(404, "gone", "There is no such job set.")
        case errors.StaleRequest():
            why = "This request is out of date: a later one was executed."
            return RequestRefused(409, "repeated", why)
        case (
            errors.WrongState()
            | errors.JobExists()
            | errors.HasDependents()
            | errors.AlreadySignaled()
            | errors.SetClosed()
        ):
            return RequestRefused(409, "state", why)
        case errors.QueueFull():
            return RequestRefused(429, "full", why, headers={"Retry-After": "1"})
        case errors.InvalidData():
            return RequestRefused(422, "data", why)
        case errors.NotDurable():
            return RequestRefused(503, "durable", f"{why}. Repeat it with its Idempotency-Key.")
    if isinstance(error, REDIS_UNAVAILABLE):
        return RequestRefused(503, "redis", "Redis is unavailable. Try again.")
    return RequestRefused(400, "request", why)


def checked(
    endpoint: Endpoint, refuse: Callable[[Exception], RequestRefused] = refusal_of
) -> Endpoint:
    """Return an endpoint that responds to errors, as `refuse` maps them."""

    @functools.wraps(endpoint)
    async def respond_to_errors(request: Request) -> Response:
        try:
            return await endpoint(request)
        except RequestRefused as refused:
            return _error(refused)
        except IdentityRefused as refused:
            return _error(RequestRefused(403, "sender", str(refused)))
        except (errors.AioqlessError, ValueError, *REDIS_UNAVAILABLE) as error:
            return _error(refuse(error))

    return respond_to_errors


def check_content_type(request: Request) -> None:
    """Refuse a body that isn't declared as JSON: forms of other websites can't be."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise RequestRefused(415, "type", f"Send changes as {JSON}.")


def check_origin(request: Request) -> None:
    """Refuse a change that a page of another origin sends without a token in a header.

    Only pages of the origins that `create_api` names may send such a header. Clients that are not
    browsers send no origin, and have no cookie but their own.
    """
    if bearer_of(request) is None and is_of_same_origin(request) is False:
        raise RequestRefused(403, "origin", "Changes must come from a page of the same origin.")


async def read_json(request: Request, type_: Any = Any) -> Any:
    """Read the body of a request as a type; an empty one is an empty object."""
    try:
        body = await read_body(request, MAX_BODY)
    except TimeoutError:
        raise RequestRefused(408, "slow", "The request took too long.") from None
    if body is None:
        raise RequestRefused(413, "size", f"The body must have at most {MAX_BODY:,} bytes.")
    try:
        return msgspec.json.decode(body or b"{}", type=type_)
    except (ValueError, RecursionError) as wrong:
        raise RequestRefused(400, "request", validation.describe_json_error(body, wrong)) from None


def respond(value: object, status: int = 200) -> Response:
    """Return a response; a `msgspec.Raw` is JSON already."""
    return Response(msgspec.json.encode(value), status, HEADERS, JSON)


def create_app(routes: Sequence[BaseRoute], middleware: Sequence[Middleware] = ()) -> Starlette:
    """Return an application whose own refusals, such as of a path, are JSON, too."""
    app = Starlette(
        routes=routes,
        exception_handlers={HTTPException: _not_routed},
        middleware=[Middleware(FramingMiddleware), *middleware],
    )
    app.router.redirect_slashes = False  # not every client follows, and none with its body
    return app


def _error(refused: RequestRefused) -> Response:
    response = respond(refused.error, refused.status)
    response.headers.update(refused.headers)
    return response


async def _not_routed(_request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    return _error(
        RequestRefused(error.status_code, "path", error.detail, headers=dict(error.headers or {}))
    )
