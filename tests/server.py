"""A Redis server of one test, which may kill it."""

from __future__ import annotations

import signal
import socket
import subprocess
from pathlib import Path

from redis import Redis
from redis.backoff import ConstantBackoff
from redis.exceptions import ConnectionError as NotConnected
from redis.retry import Retry

from aioqless.contrib.private_redis.server_binary import find_server_binary


class OwnServer:
    """A server on its own port that writes every change to disk before it answers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
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
