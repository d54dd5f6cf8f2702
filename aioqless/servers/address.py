"""A URL of Redis, read: one server, the sentinels that know which server it is now, or some nodes of a Cluster."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from redis.asyncio.connection import parse_url

from aioqless.wire import Command, Endpoint

SCHEMES = ("redis://", "rediss://", "unix://", "redis+sentinel://", "rediss+sentinel://", "redis+cluster://", "rediss+cluster://")
PORT = 6379
SENTINEL_PORT = 26379

_FILES = ("ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile")
_KNOWN = {
    *(
        "username",
        "password",
        "db",
        "path",
        "client_name",
        "protocol",
        "timeout",
        "max_connections",
        "sentinel_username",
        "sentinel_password",
    ),
    *("socket_timeout", "socket_connect_timeout", "socket_keepalive", "retry_on_timeout", "health_check_interval"),
    *(*_FILES, "ssl_password", "ssl_check_hostname", "ssl_cert_reqs", "ssl_ciphers", "ssl_min_version"),
}


Kind: TypeAlias = Literal["server", "sentinel", "cluster"]


@dataclass(frozen=True, repr=False)
class Address:
    """What a URL says. `options` are those that redis-py has for a connection."""

    url: str
    kind: Kind
    endpoints: tuple[Endpoint, ...]
    options: dict[str, Any]
    tls: ssl.SSLContext | None
    service: str = ""  # what sentinels call the server

    @classmethod
    def of(cls, url: str) -> Address:
        """Raises ValueError for a URL that can't be, naming what is wrong with it but no password."""
        parts = urlsplit(url)
        scheme, _, behind = parts.scheme.partition("+")
        if f"{parts.scheme}://" not in SCHEMES:
            raise ValueError(f"the URL of Redis must begin with {', '.join(SCHEMES)}")
        if scheme == "unix" and not parts.path:
            raise ValueError("the URL of a socket must name it: unix:///run/redis/redis.sock")
        _check_query(parts.query)
        kind = cast(Kind, behind or "server")
        path, service = parts.path.strip("/"), ""
        if kind == "sentinel":
            service, _, path = path.partition("/")
            if not service:
                raise ValueError("a URL of sentinels must name the service behind the hosts: redis+sentinel://host1,host2/mymaster")
        if kind == "cluster" and path:
            raise ValueError(f"a Redis Cluster has no databases: take {path!r} out of its URL")
        said = [dict(parse_url(each)) for each in (_each_alone(parts, scheme, path) if behind else [url])]
        port = SENTINEL_PORT if kind == "sentinel" else PORT
        endpoints = tuple(cast(Endpoint, each.get("path") or (each.get("host", "localhost"), each.get("port", port))) for each in said)
        options = {name: value for name, value in said[0].items() if name not in ("host", "port", "path", "connection_class")}
        return cls(url, kind, endpoints, options, _tls(options) if scheme == "rediss" else None, unquote(service))

    @property
    def greetings(self) -> list[Command]:
        """What a connection to the server begins with."""
        options = self.options
        greetings = authentication(options.get("username"), options.get("password"))
        return [*greetings, ("SELECT", db)] if (db := options.get("db")) else greetings

    def __str__(self) -> str:
        return shown(self.url)

    def __repr__(self) -> str:
        return f"<Address {self}>"


def authentication(user: str | None, password: str | None) -> list[Command]:
    """The command by which somebody is known, if anything is to be said."""
    if not password:
        return []
    return [("AUTH", user, password) if user else ("AUTH", password)]


def shown(url: str) -> str:
    """A URL without its passwords."""
    base, _, query = url.partition("?")
    scheme, colon, rest = base.partition("://")
    who, at, where = rest.rpartition("@")
    if at and ":" in who:
        base = f"{scheme}{colon}{who.partition(':')[0]}:***@{where}"
    kept = "&".join(f"{each.partition('=')[0]}=***" if "password" in each else each for each in query.split("&"))
    return f"{base}?{kept}" if query else base


def _each_alone(parts: SplitResult, scheme: str, path: str) -> list[str]:
    """For each host of several a URL as if it were the only one."""
    who, at, hosts = parts.netloc.rpartition("@")
    return [f"{scheme}://{who}{at}{host}/{path}?{parts.query}" for host in hosts.split(",")]


def _check_query(query: str) -> None:
    for name in parse_qs(query, keep_blank_values=True):
        if name not in _KNOWN:
            raise ValueError(f"the URL of Redis has the option {name!r}, which is none of {', '.join(sorted(_KNOWN))}")


def _tls(options: dict[str, Any]) -> ssl.SSLContext:
    requires = options.get("ssl_cert_reqs", "required")
    if requires not in ("required", "optional", "none"):
        raise ValueError(f"ssl_cert_reqs in the URL of Redis must be required, optional or none, not {requires!r}")
    try:
        context = ssl.create_default_context(cafile=options.get("ssl_ca_certs"), capath=options.get("ssl_ca_path"))
        if certificate := options.get("ssl_certfile"):
            context.load_cert_chain(certificate, options.get("ssl_keyfile"), options.get("ssl_password"))
        if ciphers := options.get("ssl_ciphers"):
            context.set_ciphers(ciphers)
    except OSError as error:  # ssl.SSLError is one; neither says which file it is about
        files = ", ".join(f"{name} {options[name]}" for name in (*_FILES, "ssl_ciphers") if name in options)
        raise ValueError(f"the certificates that the URL of Redis names can't be used ({files}): {error.strerror or error}") from None
    if options.get("ssl_check_hostname") is False or requires != "required":
        context.check_hostname = False
    if version := options.get("ssl_min_version"):
        context.minimum_version = version
    if requires == "none":
        context.verify_mode = ssl.CERT_NONE
    return context
