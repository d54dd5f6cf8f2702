"""Locked files, by which the processes of a machine see which others have ended.

The kernel unlocks a file when the process that locked it has ended, whatever ended it. A process
that is busy or stopped keeps its file locked, and so does a fork of it. Containers see the files of
each other only if they share `/dev/shm`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

SHARED_MEMORY = Path("/dev/shm")  # it is private to a container, and not to a systemd service
PARENT = SHARED_MEMORY if SHARED_MEMORY.is_dir() else Path(tempfile.gettempdir())
LOCK_TIMEOUT = 5.0  # seconds; who holds it longer is stopped
LOCK_INTERVAL = 0.05
KEPT_FOR = 86400.0  # seconds for which the file of an ended process is kept if no one removes it


@dataclass(frozen=True)
class ProcessFile:
    """A file that is locked by this process.

    Attributes:
        path: Where it is.
        text: What it contains.
    """

    path: Path
    text: str
    _descriptor: int

    @classmethod
    def create(cls, name: str, text: str) -> Self | None:
        """Create and lock a file; return None where that isn't possible.

        Args:
            name: Its name, which no other file has.
            text: What to write into it.
        """
        with contextlib.suppress(OSError):  # such as a read-only file system
            folder = _folder()
            descriptor, temporary = tempfile.mkstemp(prefix=".", dir=folder)
            if _lock(descriptor):  # before others see it
                os.write(descriptor, text.encode())
                Path(temporary).rename(folder / name)
                return cls(folder / name, text, descriptor)
            os.close(descriptor)
        return None

    def remove(self) -> None:
        """Remove and unlock it."""
        self.path.unlink(missing_ok=True)
        self.unlock()

    def unlock(self) -> None:
        """Unlock it."""
        os.close(self._descriptor)


@contextlib.asynccontextmanager
async def lock_group(group: str) -> AsyncIterator[bool]:
    """Let one process at a time deal with the files of a group; say whether this one may.

    Args:
        group: How the names of the files begin.
    """
    descriptor, end = None, time.monotonic() + LOCK_TIMEOUT
    with contextlib.suppress(OSError):
        path = _folder() / f".{group}"
        descriptor = _open(path, os.O_CREAT)
        while descriptor is None and time.monotonic() < end:
            await asyncio.sleep(LOCK_INTERVAL)
            descriptor = _open(path, os.O_CREAT)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def lock_ended(group: str) -> list[ProcessFile]:
    """Lock the files of processes that have ended; return them, each to be removed or unlocked.

    Args:
        group: How the names of the files begin.
    """
    ended: list[ProcessFile] = []
    with contextlib.suppress(OSError):
        for path in _folder().iterdir():
            is_old = time.time() - path.lstat().st_mtime > KEPT_FOR
            if not (path.name.startswith(group) or is_old):
                continue
            if (descriptor := _open(path)) is None:
                continue
            text = os.read(descriptor, 4096).decode(errors="replace")
            file = ProcessFile(path, text, descriptor)
            if is_old:
                file.remove()
            else:
                ended.append(file)
    return ended


def _folder() -> Path:
    """Return the user's folder of such files.

    Raises:
        OSError: There is none that only this user can write to, or the platform has no such locks.
    """
    if os.name != "posix":
        raise OSError("only POSIX has locks that end with a process")
    folder = PARENT / f"aioqless-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise PermissionError(f"others may write to {folder}")
    return folder


def _open(path: Path, flags: int = 0) -> int | None:
    """Open and lock a file; return None if it is locked, or gone."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | flags, 0o600)
    except FileNotFoundError:
        return None
    with contextlib.suppress(FileNotFoundError):
        if _lock(descriptor) and os.path.samestat(os.fstat(descriptor), path.stat()):
            return descriptor
    os.close(descriptor)
    return None


def _lock(descriptor: int) -> bool:
    import fcntl  # not on Windows

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
