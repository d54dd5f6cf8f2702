"""The door: what is checked of a request before anything is done, and the headers of each
answer."""

from __future__ import annotations

from starlette.requests import Request

from aioqless.contrib.http_sessions import is_from_this_machine, is_of_same_origin, read_body

COOKIE, LASTS = "aioqless-desk", 7 * 86_400  # seconds after which one must sign in again
LARGEST = 2 << 20  # bytes of a body: an answer may be as large as a job's data
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Refused(Exception):
    """A request that gets no further: the status of its answer, a word for programs, a sentence for
    people."""

    def __init__(self, status: int, code: str, message: str, by: str | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.by = status, code, message, by


def check_address(request: Request) -> None:
    """Refuse whoever isn't on this machine."""
    if not is_from_this_machine(request):
        why = "Where anybody may say any name, only this machine is served, as http://localhost."
        raise Refused(403, "address", f"{why} Give create_api an `identify` to serve others.")


def check_origin(request: Request) -> None:
    """Refuse a change that a page of another origin sends. What isn't a browser names no origin,
    and has no cookie but its own."""
    if is_of_same_origin(request) is False:
        raise Refused(403, "origin", "A change must come from a page of the same origin.")
    if (
        request.headers.get("content-type", "").partition(";")[0].strip().lower()
        != "application/json"
    ):
        raise Refused(415, "type", "A change is sent as application/json.")


async def sent(request: Request) -> bytes:
    """All that is sent, but no more than is bearable."""
    try:
        body = await read_body(request, LARGEST)
    except TimeoutError:
        raise Refused(408, "slow", "The body came too slowly.") from None
    if body is None:
        raise Refused(413, "size", f"At most {LARGEST:,} bytes can be sent.")
    return body
