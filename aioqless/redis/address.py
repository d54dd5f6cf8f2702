"""A URL of Redis: of one server, of the sentinels of a service, or of nodes of a Cluster."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from redis.asyncio.connection import parse_url
from redis.credentials import CredentialProvider

from aioqless import validation

SCHEMES = (
    "redis://",
    "rediss://",
    "unix://",
    "redis+sentinel://",
    "rediss+sentinel://",
    "redis+cluster://",
    "rediss+cluster://",
)
PORT = 6379
SENTINEL_PORT = 26379

_FILES = ("ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile")
_LOGIN = ("username", "password")
_TIMES = ("socket_timeout", "socket_connect_timeout")
_KNOWN = {
    *(*_LOGIN, "db", "client_name", "sentinel_username", "sentinel_password"),
    *(*_TIMES, "socket_keepalive", "protocol"),
    *(*_FILES, "ssl_password", "ssl_check_hostname", "ssl_cert_reqs"),
    *("ssl_ciphers", "ssl_min_version"),
}
_REFUSED = {
    "max_connections": "a client has one connection for all calls and one for each subscription",
    "timeout": "socket_timeout is how many seconds a call may take",
    "retry_on_timeout": "a call that gets no answer is always sent again, within socket_timeout",
    "health_check_interval": "socket_timeout bounds each call, and a silent subscription is "
    "pinged every 10 s",
}
_REQUIRED_SCHEME = {
    "ssl_": "rediss",
    "sentinel_": "sentinel",
    "socket_keepalive": "redis",
}  # a string that the scheme must have

Endpoint: TypeAlias = str | tuple[str, int]  # a socket's path, or a host and its port
Kind: TypeAlias = Literal["server", "sentinel", "cluster"]


@dataclass(frozen=True, repr=False)
class Address:
    """The parts of a URL, and the credential provider that comes with it.

    Attributes:
        url: The URL.
        kind: Whether it names a server, sentinels, or nodes of a Cluster.
        endpoints: Addresses of these.
        options: Options of redis-py's connections.
        tls: The TLS context; None without TLS.
        service: Name of the service that the sentinels watch.
        credentials: Provider of username and password.
    """

    url: str
    kind: Kind
    endpoints: tuple[Endpoint, ...]
    options: dict[str, Any]
    tls: ssl.SSLContext | None
    service: str = ""
    credentials: CredentialProvider | None = field(default=None, compare=False)

    @classmethod
    def parse(cls, url: str, credentials: CredentialProvider | None = None) -> Address:
        """Read and check a URL.

        Raises:
            ValueError: Something is wrong with it; the message contains no password.
        """
        parts = _split(url)
        scheme, _, behind = parts.scheme.partition("+")
        if f"{parts.scheme}://" not in SCHEMES:
            raise ValueError(f"the URL of Redis must begin with {', '.join(SCHEMES)}")
        if scheme == "unix" and not parts.path:
            raise ValueError("the URL of a socket must name it: unix:///run/redis/redis.sock")
        _check_query(parts)
        kind = cast(Kind, behind or "server")
        path, service = parts.path.strip("/"), ""
        if kind == "sentinel":
            service, _, path = path.partition("/")
            if not service:
                raise ValueError(
                    "a URL of sentinels must name the service behind the hosts: "
                    "redis+sentinel://host1,host2/mymaster"
                )
        if kind == "cluster" and path:
            raise ValueError(f"a Redis Cluster has no databases: take {path!r} out of its URL")
        _check_database(path, parts)
        parsed = [
            dict(parse_url(each))
            for each in (_split_hosts(parts, scheme, path) if behind else [url])
        ]
        port = SENTINEL_PORT if kind == "sentinel" else PORT
        endpoints = tuple(
            cast(
                Endpoint,
                each.get("path") or (each.get("host", "localhost"), each.get("port", port)),
            )
            for each in parsed
        )
        options = {
            name: value
            for name, value in parsed[0].items()
            if name not in ("host", "port", "path", "connection_class")
        }
        _check_options(options, credentials)
        return cls(
            url,
            kind,
            endpoints,
            options,
            _tls(options) if scheme == "rediss" else None,
            unquote(service),
            credentials,
        )

    @property
    def login(self) -> dict[str, Any]:
        """Arguments of a redis-py connection that authenticate to the server."""
        if self.credentials is not None:
            return {"credential_provider": self.credentials}
        return {name: self.options[name] for name in _LOGIN if name in self.options}

    @property
    def sentinel_login(self) -> dict[str, Any]:
        """Arguments of a redis-py connection that authenticate to a sentinel."""
        return {
            name: self.options[f"sentinel_{name}"]
            for name in _LOGIN
            if f"sentinel_{name}" in self.options
        }

    @property
    def connect_timeout(self) -> float | None:
        """Seconds for connecting, handshake included, if the URL says so."""
        return self.options.get("socket_connect_timeout")

    def __str__(self) -> str:
        return redact_url(self.url)

    def __repr__(self) -> str:
        return f"<Address {self}>"


def redact_url(url: str) -> str:
    """Return a URL without its passwords."""
    base, _, query = url.partition("?")
    scheme, colon, rest = base.partition("://")
    who, at, where = rest.rpartition("@")
    if at and ":" in who:
        base = f"{scheme}{colon}{who.partition(':')[0]}:***@{where}"
    kept = "&".join(
        f"{each.partition('=')[0]}=***" if "password" in each else each for each in query.split("&")
    )
    return f"{base}?{kept}" if query else base


def _split_hosts(parts: SplitResult, scheme: str, path: str) -> list[str]:
    """Return a URL for each of several hosts."""
    who, at, hosts = parts.netloc.rpartition("@")
    return [f"{scheme}://{who}{at}{host}/{path}?{parts.query}" for host in hosts.split(",")]


def _split(url: str) -> SplitResult:
    """Split a URL. The hosts are split later: urlsplit takes one IPv6 address, and no list."""
    scheme, _, behind = url.partition("://")
    end = min((at for at in map(behind.find, "/?#") if at >= 0), default=len(behind))
    return urlsplit(f"{scheme}://{behind[end:]}")._replace(netloc=behind[:end])


def _check_query(parts: SplitResult) -> None:
    for name, values in parse_qs(parts.query, keep_blank_values=True).items():
        if name in _REFUSED:
            raise ValueError(
                f"the URL of Redis has the option {name!r}, which does nothing here: "
                f"{_REFUSED[name]}. Take it out"
            )
        if name not in _KNOWN:
            raise ValueError(
                f"the URL of Redis has the option {name!r}, which is none of "
                f"{', '.join(sorted(_KNOWN))}"
            )
        if len(values) > 1 or not values[0]:
            raise ValueError(
                f"the URL of Redis must give the option {name!r} one value, "
                f"not {len(values) if values[0] else 'none'}"
            )
        for begins, wanted in _REQUIRED_SCHEME.items():
            if name.startswith(begins) and wanted not in parts.scheme:
                raise ValueError(
                    f"the URL of Redis has the option {name!r}, which does nothing in a URL that "
                    f"begins with {parts.scheme}://"
                )


def _check_database(path: str, parts: SplitResult) -> None:
    """Check the number of the database, which redis-py doesn't: it reads `/1/2` as 12."""
    if parts.scheme == "unix":
        return
    if path and not (path.isascii() and path.isdecimal()):
        raise ValueError(
            f"the URL of Redis must end in the number of a database, as in /0, not in /{path}"
        )
    if path and (db := parse_qs(parts.query).get("db")) and db != [path]:
        raise ValueError(f"the URL of Redis names two databases: /{path} and db={db[0]}")


def _check_options(options: dict[str, Any], credentials: CredentialProvider | None) -> None:
    for name in _TIMES:
        if name in options:
            validation.check_number(f"{name} in the URL of Redis", options[name], least=0.001)
    if (db := options.get("db", 0)) < 0:
        raise ValueError(f"db in the URL of Redis must be 0 or more, not {db}")
    if (protocol := options.pop("protocol", 2)) != 2:
        raise ValueError(
            f"protocol in the URL of Redis must be 2 (RESP2), not {protocol}: take it out"
        )
    if credentials is not None and any(name in options for name in _LOGIN):
        raise ValueError(
            "the URL of Redis has a username or a password, and there are credentials: "
            "give one of them"
        )


def _tls(options: dict[str, Any]) -> ssl.SSLContext:
    requires = options.get("ssl_cert_reqs", "required")
    if requires not in ("required", "optional", "none"):
        raise ValueError(
            f"ssl_cert_reqs in the URL of Redis must be required, optional or none, "
            f"not {requires!r}"
        )
    try:
        context = ssl.create_default_context(
            cafile=options.get("ssl_ca_certs"), capath=options.get("ssl_ca_path")
        )
        if certificate := options.get("ssl_certfile"):
            context.load_cert_chain(
                certificate, options.get("ssl_keyfile"), options.get("ssl_password")
            )
        if ciphers := options.get("ssl_ciphers"):
            context.set_ciphers(ciphers)
    except OSError as error:  # ssl.SSLError is one; neither says which file it is about
        files = ", ".join(
            f"{name} {options[name]}" for name in (*_FILES, "ssl_ciphers") if name in options
        )
        raise ValueError(
            f"the certificates that the URL of Redis names can't be used ({files}): "
            f"{error.strerror or error}"
        ) from None
    if options.get("ssl_check_hostname") is False or requires != "required":
        context.check_hostname = False
    if version := options.get("ssl_min_version"):
        context.minimum_version = version
    if requires == "none":
        context.verify_mode = ssl.CERT_NONE
    return context


def name_node(endpoint: Endpoint) -> str:
    """Return the address of a node as text."""
    return endpoint if isinstance(endpoint, str) else f"{endpoint[0]}:{endpoint[1]}"
