"""A minimal Redis client; importing a real one takes longer than joining a running server."""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path

from aioqless.errors import ServerUnavailable

SUPERVISOR = "aioqless-supervisor"  # connection name of the supervisor


class ErrorReply(ServerUnavailable):
    """The server answered with an error."""


class RespClient:
    """A connection to a server's socket.

    Attributes:
        loading: whether the server was still reading its data.
    """

    def __init__(self, socket_path: Path, timeout: float) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout)
        self._replies = self._socket.makefile("rb")
        self.loading = False
        try:
            self._socket.connect(str(socket_path))
            self.execute("PING")
        except ErrorReply as error:
            self.loading = str(error).startswith("LOADING")
        except OSError:
            self.close()
            raise

    def execute(self, command: str) -> str:
        """Return the reply to a command.

        Raises:
            ErrorReply: if the reply is an error.
            OSError: if the server doesn't answer.
        """
        self._socket.sendall(command.encode() + b"\r\n")
        reply = self._replies.readline()
        if reply.startswith(b"-"):
            raise ErrorReply(reply[1:].decode().strip())
        if reply.startswith(b"$"):
            reply = self._replies.read(int(reply[1:]) + 2)
        if not reply.endswith(b"\r\n"):
            raise ConnectionResetError("the server closed the connection")
        return reply.decode().strip()

    def count_connections(self) -> tuple[int, int]:
        """Return how many connections are open, including this one, and how many ever were."""
        info = dict(
            line.split(":", 1)
            for line in self.execute("INFO clients stats").splitlines()
            if ":" in line
        )
        return int(info["connected_clients"]), int(info["total_connections_received"])

    def count_users(self) -> int:
        """Return how many other connections are open, without the supervisor's."""
        connections = self.execute("CLIENT LIST").splitlines()
        return sum(SUPERVISOR not in connection for connection in connections) - 1

    def name_as_supervisor(self) -> None:
        """Name this connection the supervisor's; if the server is gone, the next call notices."""
        with suppress(OSError, ErrorReply):
            self.execute(f"CLIENT SETNAME {SUPERVISOR}")

    def shutdown(self) -> None:
        """Make the server write everything to disk and exit; it closes the connection."""
        with suppress(OSError):
            self.execute("SHUTDOWN")

    def fileno(self) -> int:
        """Return the socket's descriptor, for `select`."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the connection."""
        self._replies.close()
        self._socket.close()


def connect(socket_path: Path, timeout: float = 2.0) -> RespClient | None:
    """Connect to a server; return None if no server answers."""
    try:
        return RespClient(socket_path, timeout)
    except OSError:
        return None
