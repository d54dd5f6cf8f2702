"""How a private server is run: the one place where its options are chosen."""

from __future__ import annotations

from dataclasses import dataclass

from .data_dir import SOCKET


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Whoever starts the server decides for all who join it."""

    appendfsync: str = "always"  # docs/private-redis.md says what the other two lose
    grace: float = (
        20.0  # seconds without a user until the server is stopped; looked at ten times in that time
    )
    patience: float = 30.0  # seconds that a start or a stop may take, reading the data not counted

    def options(self) -> list[str]:
        """The server's command line; it runs in the data directory, and its output is its log."""
        chosen = {
            "port": "0",
            "unixsocket": SOCKET,
            "unixsocketperm": "700",
            "dir": ".",
            "daemonize": "no",
            "loglevel": "notice",
            "save": "",
            "appendonly": "yes",
            "appenddirname": "appendonlydir",
            "appendfsync": self.appendfsync,
            "aof-use-rdb-preamble": "no",  # plain commands are what most versions can read
            "maxmemory-policy": "noeviction",
        }
        return [word for name, value in chosen.items() for word in (f"--{name}", value)]
