"""Options of a client, and their defaults."""

from __future__ import annotations

from aioqless import validation
from aioqless.redis import Address

TIMEOUT = 30.0
TIMEOUT_WHERE_ANOTHER_TAKES_OVER = 15.0
PATIENCE_WHERE_ANOTHER_TAKES_OVER = 15.0


def connection_name(address: Address | None, name: str) -> str:
    """What Redis knows a client's connections by: as the URL says, else the client's name."""
    return str(address.options.get("client_name", name)) if address else name


def timeout_of(address: Address | None, given: float | None) -> float:
    """The seconds that a call may take: as given, as the URL says, or by default."""
    usual = TIMEOUT_WHERE_ANOTHER_TAKES_OVER if _led(address) else TIMEOUT
    said = address.options.get("socket_timeout", usual) if address else usual
    return validation.check_number("timeout", said if given is None else given, least=0.001)


def patience_of(address: Address | None, given: float | None) -> float:
    """Return the seconds for which a call is tried again while Redis is away."""
    usual = PATIENCE_WHERE_ANOTHER_TAKES_OVER if _led(address) else 0.0
    return validation.check_number("patience", usual if given is None else given, least=0)


def _led(address: Address | None) -> bool:
    """Whether another server takes over where one dies."""
    return address is not None and address.kind != "server"
