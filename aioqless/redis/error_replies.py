"""Error replies of Redis: the exception for each, and which of them say "not now"."""

from __future__ import annotations

from redis import exceptions


class Moved(exceptions.ResponseError):
    """In a Cluster: the slot is another node's, `.endpoint`. The call was not carried out."""

    @property
    def endpoint(self) -> tuple[str, int] | None:
        """Where that node is; None where it says that it doesn't know its name."""
        host, _, port = str(self).split(" ")[2].rpartition(":")
        return (host, int(port)) if host else None


class Moving(exceptions.ResponseError):
    """In a Cluster: the slot is on its way to another node, key by key. The call was not carried
    out; it would find half of the keys."""


_ERRORS: dict[str, type[Exception]] = {
    "NOSCRIPT": exceptions.NoScriptError,
    "OOM": exceptions.OutOfMemoryError,
    "READONLY": exceptions.ReadOnlyError,
    "LOADING": exceptions.BusyLoadingError,
    "MASTERDOWN": exceptions.MasterDownError,
    "CLUSTERDOWN": exceptions.ClusterDownError,
    "TRYAGAIN": exceptions.TryAgainError,
    **dict.fromkeys(("BUSY", "MISCONF", "NOREPLICAS", "UNBLOCKED"), exceptions.BusyLoadingError),
    "NOAUTH": exceptions.AuthenticationError,
    "WRONGPASS": exceptions.AuthenticationError,
    "NOPERM": exceptions.NoPermissionError,
    "MOVED": Moved,
    "ASK": Moving,
}
# Redis closes the connection after it; another wording counts a Cluster's own connections, too
_FULL = "max number of clients"

# Redis can't be reached, or is there and can't do anything now. Nothing is wrong with the call: it
# may be sent again later.
AWAY = (
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    exceptions.ReadOnlyError,
    exceptions.ClusterDownError,
    exceptions.TryAgainError,
    Moved,
    Moving,
)


def error_of(text: str) -> Exception:
    """The exception for an error reply, with the reply as its text."""
    if _FULL in text:
        return exceptions.ConnectionError(text)
    return _ERRORS.get(text.partition(" ")[0], exceptions.ResponseError)(text)
