"""Users that a reverse proxy has authenticated, and names in a header."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from aioqless.contrib.http.identity import Identity, IdentityRefused, Role

UNIX = "unix"  # the peer of a connection by a Unix socket
EVERYONE = "*"
MAX_LENGTH = 64
SCOPE_KEY = "aioqless.peer"


@dataclass(frozen=True, kw_only=True)
class ProxyHeader:
    """Identifies users by a header that only a reverse proxy may set.

    Attributes:
        header: The header, such as `X-Forwarded-User`. The proxy must set it on each request, so
            that none of its clients can.
        peers: Addresses or networks from which the header counts; `unix` for a server that listens
            on a Unix socket alone. A request from elsewhere that has the header is refused.
        roles: Roles by user name; that of `*` is for all others.

    Raises:
        ValueError: There are no peers, or one is no address.
    """

    header: str
    peers: Sequence[str]
    roles: Mapping[str, Role]

    def __post_init__(self) -> None:
        if not self.peers:
            raise ValueError(
                f"the header {self.header} needs the addresses of the proxies that may set it"
            )
        check_peers(self.peers)

    def __call__(self, request: Request) -> Identity | None:
        """Return the user that the header names; raise IdentityRefused for a forged one."""
        values = request.headers.getlist(self.header)
        if not values:
            return None
        if not is_peer(peer_of(request), self.peers):
            raise IdentityRefused(
                f"The header {self.header} counts only from a proxy whose address is configured."
            )
        if len(values) > 1:
            raise IdentityRefused(f"The header {self.header} must be sent once.")
        (name,) = values
        if len(name) > MAX_LENGTH or not name.isprintable() or {*name} & {" ", ","}:
            raise IdentityRefused(
                f"The header {self.header} must be a name of at most {MAX_LENGTH} printable "
                "characters without spaces and commas."
            )
        role = self.roles.get(name, self.roles.get(EVERYONE)) if name != EVERYONE else None
        return None if not name or role is None else Identity(name, role, may_reserve=("*",))


def parse_peers(text: str) -> list[str]:
    """Return addresses that are separated by commas; raise ValueError for what is none."""
    peers = [each.strip() for each in text.split(",") if each.strip()]
    check_peers(peers)
    return peers


def check_peers(peers: Sequence[str]) -> None:
    """Raise ValueError for a peer that is no address, no network and not `unix`."""
    if isinstance(peers, str):
        raise TypeError(f"proxies must be a list of addresses, not the text {peers!r}")
    for each in peers:
        try:
            if each != UNIX:
                ipaddress.ip_network(each)
        except ValueError:
            raise ValueError(
                f"proxy {each!r} must be an address or a network, such as 10.0.0.7 or 10.0.0.0/8, "
                "or 'unix'"
            ) from None


def is_peer(peer: str, peers: Sequence[str]) -> bool:
    """Return whether an address is one of the peers."""
    if peer == UNIX:
        return UNIX in peers
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return any(address in ipaddress.ip_network(each) for each in peers if each != UNIX)


def peer_of(request: Request) -> str:
    """Return the address of the other end of the connection, whatever headers say."""
    peer: str | None = request.scope.get(SCOPE_KEY)
    return _peer(request.scope) if peer is None else peer


def _peer(scope: Scope) -> str:
    """Return the peer as the server knows it; a header may have made it say `unix`."""
    client = scope.get("client")
    if client is None:
        return UNIX
    host: str = client[0]
    return "" if host == UNIX else host


def client_of(request: Request) -> str:
    """Return the address of a request's client, which a trusted proxy may have named."""
    return request.client.host if request.client else UNIX


def proxy_middleware(proxies: Sequence[str]) -> list[Middleware]:
    """Return what lets X-Forwarded-For and X-Forwarded-Proto of these proxies count."""
    check_peers(proxies)
    if not proxies:
        return [Middleware(PeerMiddleware)]
    return [
        Middleware(PeerMiddleware),
        Middleware(ProxyHeadersMiddleware, trusted_hosts=list(proxies)),
    ]


class PeerMiddleware:
    """Notes the peer of a connection before X-Forwarded-For changes the client."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] == "http":
            peer = scope.get(SCOPE_KEY, _peer(scope))
            scope = {**scope, "client": scope.get("client") or (UNIX, 0), SCOPE_KEY: peer}
        await self._app(scope, receive, send)
