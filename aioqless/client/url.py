"""Where Redis is: as a URL, or in parts."""

from __future__ import annotations

import os
from urllib.parse import quote, urlsplit, urlunsplit

from aioqless import validation
from aioqless.redis import SCHEMES


def redis_url(
    host: str = "localhost",
    port: int = 6379,
    db: int = 0,
    *,
    username: str | None = None,
    password: str | None = None,
    tls: bool = False,
) -> str:
    """The URL for a Redis that is known in parts; whatever characters a password has. Raises
    ValueError and TypeError."""
    for what, value, most in (("port", port, 65535), ("db", db, 2**31)):
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
            raise ValueError(f"{what} must be a whole number from 0 to {most}, not {value!r}")
    validation.check_name("host", host)
    who = _who(username, password)
    return (
        f"{'rediss' if tls else 'redis'}://{who}{f'[{host}]' if ':' in host else host}:{port}/{db}"
    )


def found(url: str | None) -> str | None:
    """The URL that holds: the one given, else AIOQLESS_URL, REDIS_URL, or that of AIOQLESS_HOST,
    AIOQLESS_PORT and AIOQLESS_DB; None without any. Where it has no password, AIOQLESS_USERNAME and
    AIOQLESS_PASSWORD are added. Raises ValueError for any other URL."""
    url = url or os.environ.get("AIOQLESS_URL") or os.environ.get("REDIS_URL") or _in_parts()
    if url and not url.startswith(SCHEMES):
        scheme, is_url, _ = url.partition(
            "://"
        )  # what is no URL isn't shown: a password may be in it
        raise ValueError(
            f"the URL of Redis must begin with {', '.join(SCHEMES)}{f' and not {scheme}://' if is_url else ''}"
        )
    password = os.environ.get("AIOQLESS_PASSWORD")
    if not url or not password or urlsplit(url).password:
        return url
    parts = urlsplit(url)
    username = parts.username or quote(os.environ.get("AIOQLESS_USERNAME", ""), safe="")
    return urlunsplit(
        parts._replace(
            netloc=f"{username}:{quote(password, safe='')}@{parts.netloc.rpartition('@')[2]}"
        )
    )


def _in_parts() -> str | None:
    parts = {
        part: value
        for part in ("host", "port", "db")
        if (value := os.environ.get(f"AIOQLESS_{part.upper()}"))
    }
    for part in ("port", "db"):
        if part in parts and not parts[part].isdecimal():
            raise ValueError(f"AIOQLESS_{part.upper()} must be a whole number, not {parts[part]!r}")
    return (
        redis_url(
            parts.get("host", "localhost"), int(parts.get("port", 6379)), int(parts.get("db", 0))
        )
        if parts
        else None
    )


def _who(username: str | None, password: str | None) -> str:
    who = quote(username or "", safe="") + (f":{quote(password, safe='')}" if password else "")
    return f"{who}@" if who else ""
