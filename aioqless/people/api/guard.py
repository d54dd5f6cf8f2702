"""The door: what is checked of a request before anything is done, and the headers of each answer."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from starlette.requests import Request

LARGEST = 2 << 20  # bytes of a body: an answer may be as large as a job's data
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip")


class Refused(Exception):
    """A request that gets no further: the status of its answer, a word for programs, a sentence for people."""

    def __init__(self, status: int, code: str, message: str, by: str | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.by = status, code, message, by


def check_address(request: Request) -> None:
    """Refuse whoever isn't on this machine, and names that aren't this machine's: a website may have led its own name here."""
    client = request.client.host if request.client else ""
    server = (request.scope.get("server") or ("",))[0]
    name = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    if not all(map(_is_loopback, (client, server, name))) or any(each in request.headers for each in FORWARDED):
        why = "Where anybody may say any name, only this machine is served, as http://localhost."
        raise Refused(403, "address", f"{why} Give create_api an `identify` to serve others.")


def check_origin(request: Request) -> None:
    """Refuse a change that a page of another origin sends. What isn't a browser names no origin, and has no cookie but its own."""
    origin = request.headers.get("origin")
    site = request.headers.get("sec-fetch-site", "same-origin")
    if site != "same-origin" or (origin is not None and urlsplit(origin).netloc != request.headers.get("host", "")):
        raise Refused(403, "origin", "A change must come from a page of the same origin.")
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(415, "type", "A change is sent as application/json.")


async def body_of(request: Request) -> bytes:
    """All that is sent, but no more than is bearable."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > LARGEST:
            raise Refused(413, "size", f"At most {LARGEST:,} bytes can be sent.")
    return bytes(body)


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
