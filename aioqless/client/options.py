"""Options of a client, and their defaults."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict

from redis.credentials import CredentialProvider

from aioqless import validation
from aioqless.client.codec import Codec
from aioqless.redis import Address
from aioqless.redis.durability import Durability

TIMEOUT = 30.0
TIMEOUT_WHERE_ANOTHER_TAKES_OVER = 15.0
PATIENCE_WHERE_ANOTHER_TAKES_OVER = 15.0


class More(TypedDict, total=False):
    """What few clients need to say. Times are in seconds."""

    patience: float  # for which a call is tried again while Redis is away
    credentials: (
        CredentialProvider | None
    )  # redis-py's, for a user and a password that change, such as tokens
    durability: Durability | None  # who must have a write before it is answered
    codec: Codec | None  # of data and results; by default what AIOQLESS_SEAL_KEYS says
    clock: Callable[[], float] | None  # for tests


def connection_name(address: Address | None, name: str) -> str:
    """What Redis knows a client's connections by: as the URL says, else the client's name."""
    return str(address.options.get("client_name", name)) if address else name


def timeout_of(address: Address | None, given: float | None) -> float:
    """The seconds that a call may take: as given, as the URL says, or by default."""
    usual = TIMEOUT_WHERE_ANOTHER_TAKES_OVER if _led(address) else TIMEOUT
    said = address.options.get("socket_timeout", usual) if address else usual
    return validation.check_number("timeout", said if given is None else given, least=0.001)


def patience_of(address: Address | None, more: More) -> float:
    """The seconds for which a call is tried again while Redis is away."""
    usual = PATIENCE_WHERE_ANOTHER_TAKES_OVER if _led(address) else 0.0
    return validation.check_number("patience", more.get("patience", usual), least=0)


def _led(address: Address | None) -> bool:
    """Whether another server takes over where one dies."""
    return address is not None and address.kind != "server"
