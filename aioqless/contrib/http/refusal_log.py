"""Limits how often refused requests are logged."""

from __future__ import annotations

import ipaddress
import time

from aioqless.contrib.http.bounded_dict import BoundedDict

INTERVAL = 60.0  # seconds
MAX_NETWORKS = 10_000


class RefusalLog:
    """Notes when the refusal of a network was logged last."""

    def __init__(self) -> None:
        self._logged = BoundedDict[str, float](MAX_NETWORKS)

    def is_due(self, address: str) -> bool:
        """Return whether to log a refusal: one a minute for each network."""
        network, now = network_of(address), time.monotonic()
        if now - self._logged.get(network, -INTERVAL) < INTERVAL:
            return False
        self._logged[network] = now
        return True


def network_of(address: str) -> str:
    """Return what counts as one address: the /64 network of IPv6, which one customer has."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(parsed.ipv4_mapped or ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)
