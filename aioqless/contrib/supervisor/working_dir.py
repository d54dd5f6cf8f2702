"""A directory of its own for each process, to work in; what dead ones left is removed by those that
come after."""

from __future__ import annotations

import fcntl
import itertools
import os
import shutil
import sys
import tempfile
from pathlib import Path

from aioqless.errors import AioqlessError

_held: list[
    int
] = []  # the lock of the directory that this process works in, for as long as it lives


def enter(folder: Path) -> Path:
    """Work in an empty directory below `folder` from now on, for temporary files too. Modules are
    imported from where they were before.

    Nobody else uses it while this process lives. Raises AioqlessError when it can't be made.
    """
    try:
        folder = folder.resolve()
        folder.mkdir(parents=True, exist_ok=True)
        own = _claim(folder)
        sys.path[:] = [str(Path(entry).absolute()) for entry in sys.path]
        os.chdir(own)
    except OSError as error:
        raise AioqlessError(f"{folder} can't be a sandbox: {error}") from None
    os.environ["TMPDIR"] = tempfile.tempdir = str(own / "tmp")
    return own


def _claim(folder: Path) -> Path:
    """Take the first directory that nobody works in, and empty all of those."""
    own = None
    for number in itertools.count(1):
        lock, place = folder / f"process-{number}.lock", folder / f"process-{number}"
        if own is not None and not lock.exists():
            return own
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            continue
        if place.is_dir():
            shutil.rmtree(place)
        if own is None:
            own = place
            own.mkdir(mode=0o700)
            (own / "tmp").mkdir()
            _held.append(descriptor)
        else:
            os.close(descriptor)
    raise AssertionError  # there is always a next number
