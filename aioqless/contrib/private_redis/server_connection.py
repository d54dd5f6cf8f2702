"""A connection to a private server, by its socket."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.exceptions import BusyLoadingError, ConnectionError, RedisError, TimeoutError
from redis.retry import Retry

from aioqless.errors import ServerUnavailable

SUPERVISOR = "aioqless-supervisor"  # connection name of the supervisor
LOST = (ConnectionError, TimeoutError)


class ServerConnection:
    """A connection to a server, which is not opened again once it is lost.

    Args:
        socket_path: The server's socket.
        timeout: Maximum number of seconds to wait for a reply.

    Attributes:
        loading: Whether the server was still reading its data.
    """

    def __init__(self, socket_path: Path, timeout: float) -> None:
        self._redis = redis.Redis(
            unix_socket_path=str(socket_path),
            socket_timeout=timeout,
            retry=Retry(NoBackoff(), 0),
            decode_responses=True,
        )
        self.loading = False
        try:
            # With one connection, which is opened now.
            self._redis = self._redis.client()  # type: ignore[no-untyped-call]
            self._redis.ping()
        except BusyLoadingError:
            self.loading = True
        except RedisError:
            self.close()
            raise

    def count_connections(self) -> tuple[int, int]:
        """Return how many connections are open, including this one, and how many ever were."""
        info = self._redis.info("clients", "stats")
        return info["connected_clients"], info["total_connections_received"]

    def count_users(self) -> int:
        """Return how many other connections are open, without the supervisor's."""
        return sum(each["name"] != SUPERVISOR for each in self._redis.client_list()) - 1

    def name_as_supervisor(self) -> None:
        """Set the connection's name; an error is ignored here, and raised by the next call."""
        with suppress(RedisError):
            self._redis.client_setname(SUPERVISOR)

    def shutdown(self) -> None:
        """Make the server write everything to disk and exit; it closes the connection."""
        with suppress(RedisError):
            self._redis.shutdown()

    def wait_for_end(self, timeout: float) -> None:
        """Wait until the server closes the connection, at most `timeout` seconds."""
        if self._redis.connection is not None:
            with suppress(*LOST):
                self._redis.connection.can_read(timeout)

    def close(self) -> None:
        """Close the connection."""
        self._redis.close()


def connect(socket_path: Path, timeout: float = 2.0) -> ServerConnection | None:
    """Connect to a server; return None if no server answers.

    Raises:
        ServerUnavailable: It refuses to answer.
    """
    try:
        return ServerConnection(socket_path, timeout)
    except LOST:
        return None
    except RedisError as error:
        raise ServerUnavailable(f"the server at {socket_path} refuses to answer: {error}") from None
