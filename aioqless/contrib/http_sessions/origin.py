"""Where a request comes from, and what it carries."""

from __future__ import annotations

import asyncio
import ipaddress
from urllib.parse import urlsplit

from starlette.requests import Request

BODY_TIMEOUT = 60.0  # seconds
FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip")


def is_from_this_machine(request: Request) -> bool:
    """Whether both ends are this machine, under a name that only this machine has: a website may
    have led its own name here. What a proxy passes on may come from anywhere, and not every proxy
    says so: this is no proof of who asks."""
    client = request.client.host if request.client else ""
    server = (request.scope.get("server") or ("",))[0] or ""
    try:
        name = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    except ValueError:  # no address at all, such as [
        return False
    return all(map(is_loopback, (client, server, name))) and not any(
        each in request.headers for each in FORWARDED
    )


def is_of_same_origin(request: Request) -> bool | None:
    """Whether a page of the origin that is asked sends it; None where nothing says which page, as
    with what isn't a browser."""
    if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        return False
    origin = request.headers.get("origin", request.headers.get("referer"))
    try:
        return (
            None if origin is None else urlsplit(origin).netloc == request.headers.get("host", "")
        )
    except ValueError:  # the same
        return False


async def body_of(request: Request, largest: int, within: float = BODY_TIMEOUT) -> bytes | None:
    """Return all that is sent; None for more than `largest` bytes, of which no more is read. Raises
    TimeoutError for what isn't complete within this number of seconds."""
    body = bytearray()
    async with asyncio.timeout(within):
        async for part in request.stream():
            body += part
            if len(body) > largest:
                return None
    return bytes(body)


def is_loopback(host: str) -> bool:
    """Whether a host's name or address is this machine's alone."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
