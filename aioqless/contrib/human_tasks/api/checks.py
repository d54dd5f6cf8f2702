"""Checks of requests, and the headers of all responses."""

from __future__ import annotations

from starlette.requests import Request

from aioqless.contrib.http_sessions import is_from_this_machine, is_of_same_origin, read_body

COOKIE = "aioqless-tasks"
SESSION_LIFETIME = 7 * 86_400  # seconds
MAX_BODY = 2 << 20  # bytes: an answer may be as large as the data of a job
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class RequestRefused(Exception):
    """A refused request: HTTP status, a code for programs, a message for people."""

    def __init__(self, status: int, code: str, message: str, by: str | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.by = status, code, message, by


def check_address(request: Request) -> None:
    """Refuse clients that are not on this machine."""
    if not is_from_this_machine(request):
        why = "Without authentication, only http://localhost on this machine is served."
        raise RequestRefused(
            403, "address", f"{why} Give create_api an `identify` to serve others."
        )


def check_origin(request: Request) -> None:
    """Refuse a change that a page of another origin sends.

    Clients that are not browsers send no origin, and have no cookie but their own.
    """
    if is_of_same_origin(request) is False:
        raise RequestRefused(403, "origin", "Changes must come from a page of the same origin.")
    if (
        request.headers.get("content-type", "").partition(";")[0].strip().lower()
        != "application/json"
    ):
        raise RequestRefused(415, "type", "Send changes as application/json.")


async def read_limited_body(request: Request) -> bytes:
    """Read the body of a request; refuse one that is too slow or too large."""
    try:
        body = await read_body(request, MAX_BODY)
    except TimeoutError:
        raise RequestRefused(408, "slow", "The request took too long.") from None
    if body is None:
        raise RequestRefused(413, "size", f"The body must have at most {MAX_BODY:,} bytes.")
    return body
