"""The timeouts of a client: as given, as the URL says, or by default."""

from __future__ import annotations

from aioqless import validation
from aioqless.redis.address import Address
from aioqless.validation import Seconds

TIMEOUT = 30.0
FAIL_OVER_TIMEOUT = 15.0  # with Sentinel or Cluster, where another server takes over
FAIL_OVER_PATIENCE = 15.0


def choose_timeout(address: Address | None, timeout: Seconds | None) -> float:
    """Return the timeout of a call, in seconds.

    Args:
        address: Where Redis is, if that is known yet.
        timeout: What the caller of the client gave.

    Raises:
        TypeError: The timeout is not a number.
        ValueError: The timeout is less than 1 ms.
    """
    default = FAIL_OVER_TIMEOUT if _has_fail_over(address) else TIMEOUT
    if timeout is None:
        timeout = address.options.get("socket_timeout", default) if address else default
    return validation.check_seconds("timeout", timeout, least=0.001)


def choose_patience(address: Address | None, patience: Seconds | None) -> float:
    """Return for how many seconds a call is retried while Redis is unavailable.

    Args:
        address: Where Redis is, if that is known yet.
        patience: What the caller of the client gave.

    Raises:
        TypeError: The patience is not a number.
        ValueError: The patience is negative.
    """
    if patience is None:
        patience = FAIL_OVER_PATIENCE if _has_fail_over(address) else 0.0
    return validation.check_seconds("patience", patience)


def _has_fail_over(address: Address | None) -> bool:
    return address is not None and address.kind != "server"
