"""Exceptions for error replies of Redis, and which of them mean "try again later"."""

from __future__ import annotations

from redis import exceptions


class TemporaryError(exceptions.ConnectionError):
    """The server can't carry out the call now, and didn't. It is no error of the call."""


class ReadOnlyServer(TemporaryError):
    """The server is a replica, perhaps since a fail-over."""


class SlotMoved(TemporaryError):
    """In a Cluster, another node has the slot: `endpoint`. The call was not carried out."""

    @property
    def endpoint(self) -> tuple[str, int] | None:
        """Address of that node; None if it doesn't know its own name."""
        host, _, port = str(self).split(" ")[2].rpartition(":")
        return (host, int(port)) if host else None


class SlotMigrating(TemporaryError):
    """In a Cluster, the slot is being moved to another node, key by key.

    The call was not carried out; it would find half of the keys.
    """


_ERRORS: dict[str, type[Exception]] = {
    "NOSCRIPT": exceptions.NoScriptError,
    "OOM": exceptions.OutOfMemoryError,
    "READONLY": ReadOnlyServer,
    "LOADING": exceptions.BusyLoadingError,
    "MASTERDOWN": TemporaryError,
    "CLUSTERDOWN": TemporaryError,
    **dict.fromkeys(("BUSY", "MISCONF", "NOREPLICAS", "UNBLOCKED"), exceptions.BusyLoadingError),
    **dict.fromkeys(("NOAUTH", "WRONGPASS", "DENIED"), exceptions.AuthenticationError),
    "NOPERM": exceptions.NoPermissionError,
    "MOVED": SlotMoved,
    "ASK": SlotMigrating,
    "TRYAGAIN": SlotMigrating,
}
# Redis closes the connection after it. Another wording counts a Cluster's own connections, too.
_TOO_MANY_CLIENTS = "max number of clients"
# The answer to a call of more than ten words, or of long ones, instead of NOAUTH.
_UNAUTHENTICATED = "Protocol error: unauthenticated"

# Redis can't be reached, or can't do anything now. Nothing is wrong with the call: it may be sent
# again later. The last three come from connections of redis-py, such as subscriptions.
REDIS_UNAVAILABLE = (
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    exceptions.ReadOnlyError,
    exceptions.ClusterDownError,
    exceptions.TryAgainError,
)


def make_error(text: str) -> Exception:
    """Return the exception for an error reply, with the reply as its text."""
    if _TOO_MANY_CLIENTS in text:
        return exceptions.ConnectionError(text)
    if _UNAUTHENTICATED in text:
        return exceptions.AuthenticationError(text)
    return _ERRORS.get(text.partition(" ")[0], exceptions.ResponseError)(text)
