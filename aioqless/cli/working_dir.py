"""A working directory of its own for each worker process.

Those of dead processes are emptied by the processes that start later.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import shutil
import sys
import tempfile
from pathlib import Path

from aioqless.errors import AioqlessError

# Descriptors of the locks of this process' directories; they must stay open while it lives.
_locks: list[int] = []


def enter_working_dir(folder: Path) -> Path:
    """Change to an empty directory below `folder`, also for temporary files.

    Modules are imported from where they were before. No other process uses the directory while
    this one lives.

    Returns:
        The directory.

    Raises:
        AioqlessError: if it can't be made.
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
    """Lock the first directory without a living process, and empty all such directories."""
    own = None
    for number in itertools.count(1):
        lock, candidate = folder / f"process-{number}.lock", folder / f"process-{number}"
        if own is not None and not lock.exists():
            return own
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            continue
        if candidate.is_dir():
            shutil.rmtree(candidate)
        if own is None:
            own = candidate
            own.mkdir(mode=0o700)
            (own / "tmp").mkdir()
            _locks.append(descriptor)
        else:
            os.close(descriptor)
    raise AssertionError  # there is always a next number
