"""The data directory of a private server: its file names, locks and socket.

Everything follows from the data directory alone and not from the environment: a cron job has no
XDG_RUNTIME_DIR, yet it must find the server that a login session started.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from aioqless.errors import ServerUnavailable

if sys.platform != "win32":
    import fcntl

ENV_VARIABLE = "AIOQLESS_DATA"
SOCKET = "redis.sock"
MAX_SOCKET_PATH = 103  # bytes: macOS takes 104 with the closing zero, Linux 108
FREE_SPACE = f"free some, or choose another place with {ENV_VARIABLE}"
MIN_FREE_BYTES = 1 << 16  # a server can't start on a disk with less
POLL_INTERVAL = 0.01  # seconds between checks of locks and sockets, which can't be awaited


@contextmanager
def translate_os_errors() -> Iterator[None]:
    """Raise ServerUnavailable, which says what to do, for an error of the operating system."""
    try:
        yield
    except (ConnectionError, TimeoutError) as error:
        raise ServerUnavailable(
            f"the private server does not answer ({error}): try again"
        ) from None
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise ServerUnavailable(
                f"there is no space left on the disk of the private server's data: {FREE_SPACE}"
            ) from None
        where = os.fsdecode(error.filename) if error.filename else "the data directory"
        raise ServerUnavailable(
            f"{where} cannot be used ({error.strerror or error}); "
            f"choose another place with {ENV_VARIABLE}"
        ) from None


class DataDir:
    """A data directory and the names of its files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.append_only_dir = path / "appendonlydir"
        self.writer_file = path / "server.json"  # which program wrote the data
        self.log_file = path / "server.log"
        # Held by the server as long as it lives: two servers would damage the data.
        self.server_lock = path / "server.lock"
        # Held by the supervisor as long as it lives; contains its process group.
        self.supervisor_lock = path / "supervisor.lock"
        # Held by the process that starts or stops the server, shared by those that join it.
        self._transition_lock = path / "turn.lock"

    @classmethod
    def locate(cls, path: Path | None = None) -> DataDir:
        """Return the directory at `path`, else at $AIOQLESS_DATA, else the user's; create nothing.

        Raises:
            ServerUnavailable: on Windows, and if the user has no home directory.
        """
        if sys.platform == "win32":
            raise ServerUnavailable(
                "aioqless starts a Redis of its own on Linux and macOS only: "
                "run one and give aioqless its URL"
            )
        if path is None:
            shared = Path(os.environ.get("XDG_DATA_HOME", ""))
            default = (shared if shared.is_absolute() else Path("~/.local/share")) / "aioqless"
            path = Path(os.environ.get(ENV_VARIABLE) or default)
        try:
            return cls(path.expanduser().resolve())
        except RuntimeError as error:  # there is no such user, or the user has no home directory
            raise ServerUnavailable(
                f"{path} can't be a data directory ({error}); choose another with {ENV_VARIABLE}"
            ) from None

    def create(self) -> None:
        """Create the directory unless it exists.

        Raises:
            ServerUnavailable: if that fails, or if other users could write to it.
        """
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ServerUnavailable(
                f"{self.path} cannot hold data ({error.strerror}); "
                f"choose another place with {ENV_VARIABLE}"
            ) from None
        require_private(self.path)

    def socket_path(self) -> Path:
        """Return the path to connect to, through a short symbolic link if it is too long."""
        socket = self.path / SOCKET
        if len(os.fsencode(socket)) <= MAX_SOCKET_PATH:
            return socket
        links = Path(f"/tmp/aioqless-{os.geteuid()}")
        links.mkdir(mode=0o700, exist_ok=True)
        require_private(links)
        link = links / hashlib.sha256(os.fsencode(self.path)).hexdigest()[:16]
        with suppress(FileExistsError):
            link.symlink_to(self.path)
        return link / SOCKET

    @contextmanager
    def lock_transitions(self, *, shared: bool = False, timeout: float) -> Iterator[None]:
        """Keep other processes from starting or stopping the server.

        With `shared`, other processes that only join the server hold the lock as well.

        Raises:
            ServerUnavailable: if another process held it for all this time.
        """
        lock = self.try_lock_transitions(shared=shared, timeout=timeout)
        if lock is None:
            raise ServerUnavailable(
                f"another process has been starting or stopping the server in {self.path} "
                f"for {timeout:g} s"
            )
        try:
            yield
        finally:
            release_lock(lock)

    def try_lock_transitions(self, *, shared: bool = False, timeout: float = 0.0) -> int | None:
        """Return the descriptor of the lock, for `release_lock`; None if it isn't to be had."""
        return acquire_lock(self._transition_lock, shared=shared, timeout=timeout)

    def diagnose(self) -> str:
        """Return a likely cause why the server doesn't run, as the end of an error message."""
        disk = os.statvfs(self.path)
        if disk.f_frsize * (disk.f_bavail if os.geteuid() else disk.f_bfree) < MIN_FREE_BYTES:
            return f"; there is no space left on its disk: {FREE_SPACE}"
        log = self.log_file.read_text(errors="replace") if self.log_file.exists() else ""
        lines = log.splitlines()[-10:]
        return "\n  ".join(["; its log ends:", *lines]) if lines else ""


def require_private(path: Path) -> None:
    """Require a directory, not a link, that this user owns and no other user may write to.

    Raises:
        ServerUnavailable: if it is not.
    """
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise ServerUnavailable(f"{path} is not a directory")
    if status.st_uid != os.geteuid():
        raise ServerUnavailable(
            f"{path} belongs to user {status.st_uid}: run as that user, "
            f"or choose another place with {ENV_VARIABLE}"
        )
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ServerUnavailable(
            f"others may write to {path}: run `chmod 700 {path}`, "
            f"or choose another place with {ENV_VARIABLE}"
        )


def acquire_lock(path: Path, *, shared: bool = False, timeout: float = 0.0) -> int | None:
    """Lock a file; return the descriptor that keeps the lock, or None after `timeout` seconds."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    deadline = time.monotonic() + timeout
    while True:
        try:
            fcntl.flock(lock, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            return lock
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(lock)
                return None
        time.sleep(POLL_INTERVAL)


def release_lock(lock: int) -> None:
    """Release a lock, even if a process that was forked meanwhile has the descriptor too."""
    fcntl.flock(lock, fcntl.LOCK_UN)
    os.close(lock)


def is_unlocked(path: Path, *, timeout: float = 0.0) -> bool:
    """Return whether no process holds a lock, waiting up to `timeout` seconds for that."""
    lock = acquire_lock(path, shared=True, timeout=timeout)
    if lock is None:
        return False
    release_lock(lock)
    return True
