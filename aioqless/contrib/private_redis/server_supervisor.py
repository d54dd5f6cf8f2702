"""The process that owns a private server: it starts it, and stops it when it is unused.

Users are the connections to the socket, so a user that was killed is gone at once. Nothing depends
on this process staying alive: it ends with its server, the kernel terminates the server with it (on
Linux), and the next user that connects starts both again.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from redis.exceptions import RedisError, ResponseError

from aioqless.contrib.private_redis.data_dir import (
    POLL_INTERVAL,
    SOCKET,
    DataDir,
    acquire_lock,
    is_unlocked,
    release_lock,
)
from aioqless.contrib.private_redis.server_binary import (
    inspect_binary,
    read_writer,
    record_writer,
)
from aioqless.contrib.private_redis.server_connection import LOST, ServerConnection, connect
from aioqless.contrib.private_redis.settings import Settings
from aioqless.errors import ServerUnavailable

MAX_LOG_BYTES = 1 << 20  # a larger log is emptied before the next start


@dataclass(frozen=True)
class ServerSupervisor:
    """Owns the server's process.

    It runs in the data directory, where the socket's path is short.
    """

    directory: DataDir
    binary: Path
    settings: Settings

    def run(self) -> None:
        """Start the server unless it runs, and watch it until it ends or is unused.

        Raises:
            ServerUnavailable: if it doesn't start.
        """
        with closing(self._connect_or_start()) as client:
            self._watch(client)

    def _connect_or_start(self) -> ServerConnection:
        """Connect to the server, starting it unless it runs; wait until it has read its data."""
        server: subprocess.Popen[bytes] | None = None
        timeout = self.settings.timeout
        deadline = time.monotonic() + timeout
        while True:
            client = connect(Path(SOCKET), timeout)
            if client and not client.loading:
                client.name_as_supervisor()
                return client
            if client:
                client.close()
                deadline = time.monotonic() + timeout
            elif server is None:
                server = self._start()
            elif server.poll() is not None:
                raise ServerUnavailable(
                    f"the server ended with status {server.returncode} instead of starting"
                )
            if time.monotonic() > deadline:
                raise ServerUnavailable(
                    f"a server holds the data but has not answered for {timeout:g} s"
                )
            time.sleep(POLL_INTERVAL)

    def _start(self) -> subprocess.Popen[bytes] | None:
        """Start the server; None while the previous one is still ending."""
        lock = acquire_lock(self.directory.server_lock)
        if lock is None:
            return None
        try:
            binary = inspect_binary(self.binary)
            writer = read_writer(self.directory)
            if binary is None or (writer and not binary.can_open(writer)):
                raise ServerUnavailable(f"{self.binary} has been removed or replaced")
            record_writer(self.directory, binary)
            if os.fstat(sys.stdout.fileno()).st_size > MAX_LOG_BYTES:
                os.ftruncate(sys.stdout.fileno(), 0)
            command = [str(binary.path), *self.settings.command_line()]
            return subprocess.Popen(
                command,
                pass_fds=(lock,),
                preexec_fn=end_with_parent(),  # noqa: PLW1509 (there are no threads here)
            )
        finally:
            os.close(lock)  # the server's own copy keeps it locked

    def _watch(self, client: ServerConnection) -> None:
        interval = self.settings.idle_timeout / 10
        known, used = -1, time.monotonic()
        with suppress(*LOST):  # it has ended
            while True:
                try:
                    connected, total = client.count_connections()
                    # A connection counts as use though it is closed already: it may have been a
                    # call of `ensure`, whose caller is about to connect.
                    if connected > 1 or total != known:
                        known, used = total, time.monotonic()
                    elif (
                        time.monotonic() - used > self.settings.idle_timeout
                        and self._stop_if_unused(client, known)
                    ):
                        return
                except ResponseError:  # busy with a user's script
                    used = time.monotonic()
                client.wait_for_end(interval)

    def _stop_if_unused(self, client: ServerConnection, known: int) -> bool:
        """Stop the server, unless a user has connected meanwhile or is about to."""
        lock = self.directory.try_lock_transitions()
        if lock is None:
            return False
        try:
            if client.count_connections() != (1, known):
                return False
            write_log(f"unused for {self.settings.idle_timeout:g} s; stopping the server")
            client.shutdown()
            is_unlocked(self.directory.server_lock, timeout=self.settings.timeout)
            return True
        finally:
            release_lock(lock)


def end_with_parent() -> Callable[[], object] | None:
    """Return what a child process runs before its program, so that it ends with the supervisor.

    The kernel sends it SIGTERM then; only Linux can do so.
    """
    if sys.platform != "linux":
        return None
    from ctypes import CDLL

    def set_parent_death_signal(libc: CDLL, parent: int) -> None:
        libc.prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)

    return partial(set_parent_death_signal, CDLL(None), os.getpid())


def write_log(text: str) -> None:
    """Add a line to the log if that is possible; a full disk must not end the supervisor."""
    line = f"{os.getpid()}:aioqless {time.strftime('%d %b %Y %H:%M:%S')} {text}\n"
    with suppress(OSError):
        os.write(1, line.encode())


def main() -> None:
    """Watch the server of the data directory that the command line names.

    For the caller this process ends as soon as the supervisor holds its lock.
    """
    directory, binary = DataDir(Path(sys.argv[1])), Path(sys.argv[2])
    settings = Settings(**json.loads(sys.argv[3]))
    os.umask(0o077)
    lock = acquire_lock(directory.supervisor_lock, timeout=1.0)
    if lock is None:
        sys.exit("this server has a supervisor already")
    # `stop` signals this process group: the supervisor and the server.
    os.pwrite(lock, f"{os.getpgrp():<10}".encode(), 0)
    if os.fork():
        os._exit(0)
    try:
        ServerSupervisor(directory, binary, settings).run()
    except (ServerUnavailable, OSError, RedisError) as error:
        write_log(str(error))
        sys.exit(1)
