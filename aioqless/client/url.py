"""The URL of Redis: from its parts, from the environment, or as given."""

from __future__ import annotations

import os
import re
from urllib.parse import quote, urlsplit, urlunsplit

from aioqless import validation
from aioqless.redis.address import SCHEMES


def redis_url(
    host: str = "localhost",
    port: int = 6379,
    db: int = 0,
    *,
    username: str | None = None,
    password: str | None = None,
    tls: bool = False,
) -> str:
    """Return the URL of a Redis from its parts, which may have any characters.

    Args:
        host: Name or address of the host.
        port: Its port.
        db: Number of the database.
        username: Name of the Redis user.
        password: Its password.
        tls: Connect with TLS.

    Raises:
        TypeError: The host is not a string.
        ValueError: A part is out of range.
    """
    for what, value, most in (("port", port, 65535), ("db", db, 2**31)):
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
            raise ValueError(f"{what} must be an integer from 0 to {most} (got {value!r})")
    validation.check_name("host", host)
    scheme = "rediss" if tls else "redis"
    user = quote(username or "", safe="") + (f":{quote(password, safe='')}" if password else "")
    netloc = (f"{user}@" if user else "") + (f"[{host}]" if ":" in host else host)
    return f"{scheme}://{netloc}:{port}/{db}"


def find_url(url: str | None) -> str | None:
    """Return the URL to connect to; None if there is none.

    The one given, else AIOQLESS_URL, REDIS_URL, or that of AIOQLESS_HOST, AIOQLESS_PORT and
    AIOQLESS_DB. One without a password gets AIOQLESS_USERNAME and AIOQLESS_PASSWORD.

    Args:
        url: The URL that the caller gave.

    Raises:
        TypeError: It is not a string.
        ValueError: It is not a URL of Redis.
    """
    if url is not None and not isinstance(url, str):
        raise TypeError(
            "Client takes the URL of Redis, and connects by itself: "
            f"Client('redis://localhost:6379/0') (got {type(url).__name__})"
        )
    url = url or os.environ.get("AIOQLESS_URL") or os.environ.get("REDIS_URL") or _read_parts()
    if url and not url.startswith(SCHEMES):
        scheme, is_url, _ = url.partition("://")  # any other text may have a password
        but = f" (got {scheme}://)" if is_url else ""
        if re.fullmatch(r"[\w.-]+(:\d+)?(/\d+)?", url):
            but = f": write redis://{url}"
        raise ValueError(f"the URL of Redis must begin with {', '.join(SCHEMES)}{but}")
    password = os.environ.get("AIOQLESS_PASSWORD")
    if not url or not password or urlsplit(url).password:
        return url
    parts = urlsplit(url)
    username = parts.username or quote(os.environ.get("AIOQLESS_USERNAME", ""), safe="")
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{username}:{quote(password, safe='')}@{host}"))


def _read_parts() -> str | None:
    """Return the URL of the parts in the environment, if there are any."""
    parts = {
        part: value
        for part in ("host", "port", "db")
        if (value := os.environ.get(f"AIOQLESS_{part.upper()}"))
    }
    for part in ("port", "db"):
        if part in parts and not parts[part].isdecimal():
            name = f"AIOQLESS_{part.upper()}"
            raise ValueError(f"{name} must be an integer (got {parts[part]!r})")
    if not parts:
        return None
    return redis_url(
        parts.get("host", "localhost"), int(parts.get("port", 6379)), int(parts.get("db", 0))
    )
