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

from aioqless.redis.address import redact_url

_urls: set[str] = set()  # of the servers that this process runs


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
            _urls.add(url := f"unix://{socket}")
            yield url
        finally:
            _urls.discard(f"unix://{socket}")
            process.terminate()
            process.wait()


def empty(url: str) -> None:
    """Delete all keys of a server that `server` has started.

    Raises:
        ValueError: It is another one.
    """
    if url not in _urls:
        raise ValueError(
            "only a Redis that aioqless.testing.server has started is emptied for tests "
            f"(got {redact_url(url)})"
        )
    with Redis(unix_socket_path=url.removeprefix("unix://")) as redis:
        redis.flushall()
