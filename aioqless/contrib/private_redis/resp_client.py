"""Talk to the server without a client library, whose import costs more than all the rest of joining
it."""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path

from .data_dir import NoServer

WATCHER = "aioqless-watcher"


class Refused(NoServer):
    """The server answered with an error."""


class Line:
    """One connection; a silence of `patience` seconds ends it. `loading`: the server was still
    reading its data."""

    def __init__(self, address: Path, patience: float) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(patience)
        self._replies = self._socket.makefile("rb")
        self.loading = False
        try:
            self._socket.connect(str(address))
            self.ask("PING")
        except Refused as refusal:
            self.loading = str(refusal).startswith("LOADING")
        except OSError:
            self.close()
            raise

    def ask(self, words: str) -> str:
        """Return the reply to one command; raise `Refused` for an error, OSError when the server is
        gone or silent."""
        self._socket.sendall(words.encode() + b"\r\n")
        reply = self._replies.readline()
        if reply.startswith(b"-"):
            raise Refused(reply[1:].decode().strip())
        if reply.startswith(b"$"):
            reply = self._replies.read(int(reply[1:]) + 2)
        if not reply.endswith(b"\r\n"):
            raise ConnectionResetError("the server closed the connection")
        return reply.decode().strip()

    def connections(self) -> tuple[int, int]:
        """How many are open, this one included, and how many there have ever been."""
        told = dict(
            line.split(":", 1)
            for line in self.ask("INFO clients stats").splitlines()
            if ":" in line
        )
        return int(told["connected_clients"]), int(told["total_connections_received"])

    def users(self) -> int:
        """How many others are open, the watcher's not counted."""
        return sum(WATCHER not in line for line in self.ask("CLIENT LIST").splitlines()) - 1

    def watch(self) -> None:
        """Declare this connection to be the watcher's; should the server be gone, the next question
        will find out."""
        with suppress(OSError, Refused):
            self.ask(f"CLIENT SETNAME {WATCHER}")

    def shut_down(self) -> None:
        """Have the server write everything out and end; its only answer is to hang up."""
        with suppress(OSError):
            self.ask("SHUTDOWN")

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._replies.close()
        self._socket.close()


def call(address: Path, patience: float = 2.0) -> Line | None:
    """A line to the server, or None when nobody answers."""
    try:
        return Line(address, patience)
    except OSError:
        return None
