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


@dataclass(frozen=True)
class ProcessFile:
    """A file that is locked by this process."""

    path: Path
    text: str
    _descriptor: int

    @classmethod
    def create(cls, group: str, name: str, text: str) -> Self | None:
        """Create and lock a file; return None where that isn't possible."""
        for _ in range(3):  # another process may remove the empty folder meanwhile
            with contextlib.suppress(OSError):  # such as a read-only file system
                folder = _folder(group)
                folder.mkdir(exist_ok=True)
                descriptor, temporary = tempfile.mkstemp(prefix=".", dir=folder)
                with contextlib.ExitStack() as otherwise:
                    otherwise.callback(os.close, descriptor)
                    otherwise.callback(Path(temporary).unlink, missing_ok=True)
                    if _lock(descriptor):  # before others see it
                        os.write(descriptor, text.encode())
                        Path(temporary).rename(folder / name)
                        otherwise.pop_all()
                        return cls(folder / name, text, descriptor)
        return None

    def remove(self) -> None:
        """Remove and unlock it, and its folder if that is empty."""
        with contextlib.suppress(OSError):
            self.path.unlink()  # while it is locked, or others would take it for an ended one
        self.unlock()
        with contextlib.suppress(OSError):
            self.path.parent.rmdir()

    def unlock(self) -> None:
        """Unlock it."""
        os.close(self._descriptor)


@contextlib.asynccontextmanager
async def lock_group(group: str) -> AsyncIterator[bool]:
    """Let one process at a time deal with the files of a group; say whether this one may."""
    descriptor, end = None, time.monotonic() + LOCK_TIMEOUT
    with contextlib.suppress(OSError):
        descriptor = _open(_folder(group), os.O_DIRECTORY)
        while descriptor is None and time.monotonic() < end:
            await asyncio.sleep(LOCK_INTERVAL)
            descriptor = _open(_folder(group), os.O_DIRECTORY)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def lock_ended(group: str) -> list[ProcessFile]:
    """Lock the files of a group whose processes have ended; remove or unlock each of them."""
    ended: list[ProcessFile] = []
    with contextlib.suppress(OSError):
        for path in _folder(group).iterdir():
            if path.name.startswith(".") or (descriptor := _open(path, os.O_RDWR)) is None:
                continue
            text = os.read(descriptor, 4096).decode(errors="replace")
            ended.append(ProcessFile(path, text, descriptor))
    return ended


def _folder(group: str) -> Path:
    """Return the folder of a group, which may not exist.

    Raises:
        OSError: Others could write to it, or the platform has no such locks.
    """
    if os.name != "posix":
        raise OSError("only POSIX has locks that end with a process")
    own = PARENT / f"aioqless-{os.getuid()}"
    own.mkdir(mode=0o700, exist_ok=True)
    status = own.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise PermissionError(f"others may write to {own}")
    return own / group


def _open(path: Path, flags: int) -> int | None:
    """Open and lock a file or folder; return None if it is locked, or gone."""
    try:
        descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW)
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
