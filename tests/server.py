"""A Redis server of one test, which may kill it."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
from pathlib import Path

from redis import Redis
from redis.backoff import ConstantBackoff
from redis.exceptions import ConnectionError as NotConnected
from redis.retry import Retry

# Client connections get ports above: a client could take one before the server binds it, or while
# the server is down; on loopback, a client that tries to reconnect may even connect to itself.
PORTS = range(10_000, 22_000)  # a Cluster node's bus has its node's port plus 10,000
PROCESSES = 16  # of pytest-xdist at most; a process without a number counts as the last
_given: set[int] = set()


def free_port() -> int:
    """Return a free port that no other process of this run gets, and this one not again.

    So it stays free while its server starts, or is down.
    """
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw-1").removeprefix("gw")) % PROCESSES
    own = PORTS[number::PROCESSES]
    if len(_given) > len(own) / 2:
        _given.clear()
    while True:
        port = secrets.choice(own)
        if port not in _given:
            with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
                _given.add(port)
                return port


class OwnServer:
    """A server on its own port that writes every change to disk before it answers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server on its data; returns when it answers."""
        safe = [
            "--appendonly",
            "yes",
            "--appendfsync",
            "always",
            "--save",
            "",
        ]  # everysec may lose seconds if the disk is busy
        options = [
            "--bind",
            "127.0.0.1",
            "--port",
            str(self.port),
            "--dir",
            str(self._folder),
            *safe,
        ]
        # tests of the core alone run without this extension
        from aioqless.contrib.private_redis.server_binary import find_server_binary

        self._process = subprocess.Popen(
            [str(find_server_binary().path), *options], stdout=subprocess.DEVNULL
        )
        patience = Retry(ConstantBackoff(0.01), 1000, supported_errors=(NotConnected,))
        with Redis.from_url(self.url, retry=patience) as redis:
            redis.ping()

    def kill(self) -> None:
        """Kill the server with -9."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None
