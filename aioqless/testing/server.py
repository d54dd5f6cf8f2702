"""A Redis that ends with the tests."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from redis import Redis
from redis.backoff import ConstantBackoff
from redis.exceptions import ConnectionError as NotConnected
from redis.retry import Retry


@contextlib.contextmanager
def server() -> Iterator[str]:
    """Start a server on a socket in a directory of its own, and yield its URL.

    It is the one of `aioqless[private-redis]`, else a redis-server on PATH; it writes nothing to
    disk.

    Raises:
        ServerUnavailable: There is none.
    """
    with tempfile.TemporaryDirectory(prefix="aioqless-") as folder:
        socket = Path(folder) / "redis.sock"
        settings = {
            "port": "0",
            "unixsocket": str(socket),
            "save": "",
            "dir": folder,
            "enable-debug-command": "yes",
        }
        options = [word for name, value in settings.items() for word in (f"--{name}", value)]
        binary = import_module("aioqless.contrib.private_redis").find_server_binary()
        process = subprocess.Popen([str(binary.path), *options], stdout=subprocess.DEVNULL)
        try:
            retry = Retry(ConstantBackoff(0.01), 1000, supported_errors=(NotConnected,))
            with Redis(unix_socket_path=str(socket), retry=retry) as redis:
                redis.ping()
            yield f"unix://{socket}"
        finally:
            process.terminate()
            process.wait()
