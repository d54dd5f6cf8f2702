"""Where a private server lives: its directory, the names in it, its locks and its socket.

All of it follows from the data directory alone and never from the rest of the environment: a cron
job has no XDG_RUNTIME_DIR, yet it must find the server that a login session started."""

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

if sys.platform != "win32":
    import fcntl

VARIABLE = "AIOQLESS_DATA"
SOCKET = "redis.sock"
LONGEST_SOCKET = 103  # bytes: macOS takes 104 with the closing zero, Linux 108
ROOM = f"free some, or choose another place with {VARIABLE}"
LITTLE = 1 << 16  # bytes left on a disk, with which a server can't start
PAUSE = 0.01  # seconds between two looks at what has no way to wake us


class NoServer(RuntimeError):
    """No private server can be found, started, reached or stopped; the message says why and what to
    do."""


@contextmanager
def explained() -> Iterator[None]:
    """Raise NoServer, which says what to do, for an error of the operating system."""
    try:
        yield
    except (ConnectionError, TimeoutError) as error:
        raise NoServer(f"the private server does not answer ({error}): try again") from None
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NoServer(
                f"there is no space left on the disk of the private server's data: {ROOM}"
            ) from None
        where = os.fsdecode(error.filename) if error.filename else "the data directory"
        raise NoServer(
            f"{where} cannot be used ({error.strerror or error}); choose another place with {VARIABLE}"
        ) from None


class Home:
    """One data directory, and the names in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = path / "appendonlydir"
        self.marker = path / "server.json"  # says which program wrote the data
        self.log = path / "server.log"
        self.serving = (
            path / "server.lock"
        )  # locked by the server as long as it lives: two would spoil the data
        self.watching = (
            path / "watcher.lock"
        )  # locked as long as there is a watcher; names its process group
        self.turning = (
            path / "turn.lock"
        )  # locked by whoever starts or stops the server, shared by those who join it

    @classmethod
    def at(cls, path: Path | None = None) -> Home:
        """The home at `path`, else at $AIOQLESS_DATA, else below the user's data directory. Creates
        nothing."""
        if sys.platform == "win32":
            raise NoServer(
                "aioqless starts a Redis of its own on Linux and macOS only: run one and give aioqless its URL"
            )
        if path is None:
            shared = Path(os.environ.get("XDG_DATA_HOME", ""))
            default = (shared if shared.is_absolute() else Path("~/.local/share")) / "aioqless"
            path = Path(os.environ.get(VARIABLE) or default)
        try:
            return cls(path.expanduser().resolve())
        except RuntimeError as error:  # there is no such user, or the user has no home
            raise NoServer(
                f"{path} is no place for data ({error}); choose another one with {VARIABLE}"
            ) from None

    def prepare(self) -> None:
        """Make the directory when it is missing; refuse one that others could write to."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise NoServer(
                f"{self.path} cannot hold data ({error.strerror}); choose another place with {VARIABLE}"
            ) from None
        refuse_unless_ours(self.path)

    def address(self) -> Path:
        """The path by which to connect: the socket's own, or one through a short link where that is
        too long."""
        socket = self.path / SOCKET
        if len(os.fsencode(socket)) <= LONGEST_SOCKET:
            return socket
        links = Path(f"/tmp/aioqless-{os.geteuid()}")
        links.mkdir(mode=0o700, exist_ok=True)
        refuse_unless_ours(links)
        link = links / hashlib.sha256(os.fsencode(self.path)).hexdigest()[:16]
        with suppress(FileExistsError):
            link.symlink_to(self.path)
        return link / SOCKET

    @contextmanager
    def turn(self, *, shared: bool = False, patience: float) -> Iterator[None]:
        """Keep others from starting or stopping the server; `shared` with those who only join
        it."""
        lock = take(self.turning, shared=shared, patience=patience)
        if lock is None:
            raise NoServer(
                f"another process has been starting or stopping the server in {self.path} for {patience:g} s"
            )
        try:
            yield
        finally:
            drop(lock)

    def trouble(self) -> str:
        """What may be why the server doesn't run, to end an error message with: a full disk, the
        log's last lines."""
        disk = os.statvfs(self.path)
        if disk.f_frsize * (disk.f_bavail if os.geteuid() else disk.f_bfree) < LITTLE:
            return f"; there is no space left on its disk: {ROOM}"
        lines = self.log.read_text(errors="replace").splitlines()[-10:] if self.log.exists() else []
        return "\n  ".join(["; its log ends:", *lines] if lines else [])


def refuse_unless_ours(path: Path) -> None:
    """Raise `NoServer` unless `path` is a directory, no link, of this user's that nobody else may
    write to."""
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise NoServer(f"{path} is not a directory")
    if found.st_uid != os.geteuid():
        raise NoServer(
            f"{path} belongs to user {found.st_uid}: run as that user, or choose another place with {VARIABLE}"
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise NoServer(
            f"others may write to {path}: run `chmod 700 {path}`, or choose another place with {VARIABLE}"
        )


def take(path: Path, *, shared: bool = False, patience: float = 0.0) -> int | None:
    """Lock the file `path` within `patience` seconds: the descriptor that keeps the lock, or
    None."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(lock, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            return lock
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(lock)
                return None
        time.sleep(PAUSE)


def drop(lock: int) -> None:
    """Release a lock, even if a process that was forked meanwhile has the descriptor too."""
    fcntl.flock(lock, fcntl.LOCK_UN)
    os.close(lock)


def is_free(path: Path, *, patience: float = 0.0) -> bool:
    """Whether the lock `path` is held by nobody, or becomes so within `patience` seconds."""
    lock = take(path, shared=True, patience=patience)
    if lock is None:
        return False
    drop(lock)
    return True
