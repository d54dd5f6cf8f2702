"""Standard output and error of a server process: writing never raises or blocks for long.

The reader of a pipe may go away or stall, a disk may be full, a descriptor may be closed. What
can't be written is dropped and counted.
"""

from __future__ import annotations

import io
import os
import select
import stat
import sys
import time
from dataclasses import dataclass
from typing import TextIO

STALL_TIMEOUT = 1.0  # seconds to wait for a reader, once until it reads again
UNLIMITED = 1 << 30
PORTION = getattr(select, "PIPE_BUF", UNLIMITED)  # bytes that don't block if there is any room


@dataclass(eq=False)
class Dropped:
    """The number of lines dropped since that was last logged, and the latest reason."""

    lines: int = 0
    error: str = ""

    def add(self, lines: int, error: str) -> None:
        """Count dropped lines."""
        self.lines += lines
        self.error = error

    def take(self) -> tuple[int, str]:
        """Return both, and count from 0 again."""
        taken, self.lines = (self.lines, self.error), 0
        return taken


dropped = Dropped()


class Output(io.RawIOBase):
    """Writes to a duplicate of a descriptor.

    If a handler closes the original, a socket may get its number; log lines must not go there.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._given = descriptor
        kind = os.fstat(descriptor).st_mode
        reopened = _nonblocking(descriptor) if stat.S_ISFIFO(kind) or stat.S_ISCHR(kind) else None
        self._own = os.dup(descriptor) if reopened is None else reopened
        self._portion = PORTION if reopened is None else UNLIMITED
        self._may_block = hasattr(select, "poll") and not (stat.S_ISREG(kind) or stat.S_ISBLK(kind))
        self._stalled = False
        self._torn = False  # the latest line was cut off

    def writable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the original descriptor."""
        return self._given

    def isatty(self) -> bool:
        """Return whether it is a terminal."""
        return os.isatty(self._own)

    def write(self, data: object, /) -> int:
        """Write all of it, or drop what can't be written; return the length in any case."""
        content = bytes(data)  # type: ignore[call-overload]
        left = memoryview(b"\n" + content if self._torn else content)
        given, until = len(left), time.monotonic() + STALL_TIMEOUT
        try:
            while left:
                left = left[self._write_some(left, until) :]
            self._torn = False
        except OSError as error:
            self._torn = self._torn or 0 < len(left) < given
            dropped.add(max(1, bytes(left).count(b"\n")), error.strerror or str(error))
        return len(content)

    def _write_some(self, content: memoryview, until: float) -> int:
        """Return how many bytes the descriptor took."""
        if not self._may_block:
            return os.write(self._own, content)
        poll = select.poll()
        poll.register(self._own, select.POLLOUT)
        if not poll.poll(0 if self._stalled else max(0.0, until - time.monotonic()) * 1000):
            self._stalled = True
            raise TimeoutError(0, f"the reader has not read for {STALL_TIMEOUT:g} s")
        self._stalled = False
        try:
            return os.write(self._own, content[: self._portion])
        except BlockingIOError:  # another process filled the pipe meanwhile
            return 0


def _nonblocking(descriptor: int) -> int | None:
    """Open a pipe or terminal again, so that only writes by the new descriptor don't block.

    Returns:
        A non-blocking descriptor; None if that is impossible.
    """
    try:
        flags = os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        return os.open(f"/proc/self/fd/{descriptor}", flags)
    except (OSError, AttributeError):
        return None


def protect() -> None:
    """Make sys.stdout and sys.stderr write through an `Output`, if they have descriptors."""
    sys.stdout, sys.stderr = _wrap(sys.stdout), _wrap(sys.stderr)


def _wrap(stream: TextIO) -> TextIO:
    try:
        descriptor = stream.fileno()
        stream.flush()
    except (AttributeError, OSError, ValueError):
        return stream
    if isinstance(getattr(getattr(stream, "buffer", None), "raw", None), Output):
        return stream
    buffer = io.BufferedWriter(Output(descriptor))
    return io.TextIOWrapper(
        buffer, encoding=stream.encoding, errors="backslashreplace", line_buffering=True
    )
