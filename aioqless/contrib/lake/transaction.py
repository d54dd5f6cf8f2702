"""How the lake is changed: whole files and whole partitions, each in one step.

Whoever reads the files at any moment, with Spark or without, finds a partition as it was before a
change or as it is after it, also when the process that changes it is killed: new files are written
elsewhere, and then take the place of the old ones by a rename."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from aioqless.contrib.lake.lake import Lake, LakeError, Partition, named

_HERE: Final = -100  # AT_FDCWD
_SWAP: Final = 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS
_UNABLE: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP})


@contextmanager
def changing(lake: Lake, work: str) -> Iterator[Changes]:
    """Be the only process that does this kind of work in the lake, such as `tables`. Raises
    LakeError if another one does.

    What a killed one left is put right first: what it had written in part is removed.
    """
    import fcntl

    path = lake.root / "locks" / named(work)
    path.parent.mkdir(exist_ok=True)
    with path.open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.seek(0)
            raise LakeError(
                f"process {lock.read() or '?'} is at work on {work} of {lake.root}: wait for its end, or stop it"
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        changes = Changes(lake, lake.root / "staging" / named(work))
        changes.mend()
        try:
            yield changes
        finally:
            changes.mend()


class Changes:
    """What one kind of work does to the lake, while it is the only one that does it."""

    def __init__(self, lake: Lake, staging: Path) -> None:
        self.lake = lake
        self._staging = staging
        self._aside = staging / "aside"

    def folder(self) -> Path:
        """The path of a new folder to write to, which isn't there yet; it is on the lake's file
        system."""
        self._staging.mkdir(parents=True, exist_ok=True)
        return self._staging / uuid.uuid4().hex

    def put(self, staged: Path, partition: Partition, name: str) -> Path:
        """Move a staged file into a partition under this name, in the place of the one that may be
        there. Returns where it is."""
        final = self.lake.root / partition.folder / name
        final.parent.mkdir(parents=True, exist_ok=True)
        _synced(staged)
        staged.replace(final)
        _synced(final.parent)
        return final

    def replace(self, partition: Partition, staged: Path | None) -> None:
        """Let a staged folder be the partition, in the place of all that is there. Without one the
        partition is taken away."""
        final = self.lake.root / partition.folder
        aside = self._aside / partition.folder
        aside.parent.mkdir(parents=True, exist_ok=True)
        if staged:
            _only_parquet(staged)
            final.parent.mkdir(parents=True, exist_ok=True)
        # Where two folders can change places, the old files stay in staging until the end: who is
        # reading them can go on.
        if not (staged and final.exists() and _swapped(staged, final)):
            if final.exists():
                final.rename(aside)
            if staged:
                staged.rename(final)
            shutil.rmtree(aside, ignore_errors=True)
        if staged:
            _synced(final.parent)

    def mend(self) -> None:
        """Put back what was set aside by a process that came no further, and remove what is left of
        it."""
        for aside in self._aside.glob("*/*/namespace=*/date=*"):
            final = self.lake.root / aside.relative_to(self._aside)
            if not final.exists():
                aside.rename(final)
        shutil.rmtree(self._staging, ignore_errors=True)


def staged_partitions(folder: Path, table: str) -> list[tuple[Partition, Path]]:
    """What Spark wrote below a folder, with `partitionBy("namespace", "date")`."""
    return [(Partition.of(table, each), each) for each in sorted(folder.glob("namespace=*/date=*"))]


def _only_parquet(folder: Path) -> None:
    """Have the files on the disk, without the checksums that Hadoop's own file system keeps beside
    them."""
    for file in folder.iterdir():
        if file.suffix == ".parquet":
            _synced(file)
        else:
            file.unlink()
    _synced(folder)


def _synced(path: Path) -> None:
    """Have a file's contents, or a folder's entries, on the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _swapped(one: Path, other: Path) -> bool:
    """Whether two folders changed places in one step; not every system can."""
    library = ctypes.CDLL(None, use_errno=True)
    paths = os.fsencode(one), os.fsencode(other)
    if sys.platform == "darwin" and hasattr(library, "renamex_np"):
        failed = library.renamex_np(*paths, _SWAP)
    elif hasattr(library, "renameat2"):
        failed = library.renameat2(_HERE, paths[0], _HERE, paths[1], _SWAP)
    else:
        return False
    if failed and ctypes.get_errno() not in _UNABLE:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(other))
    return not failed
