"""Checks where a request comes from."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from starlette.requests import Request

FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip")


def is_from_this_machine(request: Request) -> bool:
    """Return whether both ends and the name of the server are this machine's.

    The name is checked because a website may have pointed its own name here. Proxies forward
    requests from anywhere, and not every proxy says so: this does not authenticate the client.
    """
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
    """Return whether a page of the requested origin has sent a request.

    None: no header says which page, as with clients that are not browsers.
    """
    if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        return False
    origin = request.headers.get("origin", request.headers.get("referer"))
    if origin is None:
        return None
    try:
        return urlsplit(origin).netloc == request.headers.get("host", "")
    except ValueError:  # no address at all
        return False


def is_loopback(host: str) -> bool:
    """Return whether a host's name or address is this machine's alone."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
