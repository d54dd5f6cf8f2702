"""Options of a private server."""

from __future__ import annotations

from dataclasses import dataclass

from aioqless.contrib.private_redis.data_dir import SOCKET


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a server is run; the process that starts it decides for all that join it.

    Attributes:
        appendfsync: `always`, `everysec` or `no`; docs/private-redis.md says what the last two may
            lose.
        idle_timeout: seconds without a user until the server is stopped; checked ten times in that
            period.
        timeout: maximum number of seconds that a start or stop may take, without the time it takes
            to read the data.
    """

    appendfsync: str = "always"
    idle_timeout: float = 20.0
    timeout: float = 30.0

    def command_line(self) -> list[str]:
        """Return the server's options; it runs in the data directory, and its output is its log."""
        options = {
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
            "aof-use-rdb-preamble": "no",  # most versions can read plain commands
            "maxmemory-policy": "noeviction",
        }
        return [word for name, value in options.items() for word in (f"--{name}", value)]
