"""Reads keys from the terminal as they are pressed."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

from aioqless.errors import AioqlessError

Keys: TypeAlias = asyncio.Queue[str]

_SEQUENCES = {
    **dict.fromkeys((b"\x1b[A", b"\x1bOA"), "up"),
    **dict.fromkeys((b"\x1b[B", b"\x1bOB"), "down"),
    **dict.fromkeys((b"\x1b[H", b"\x1bOH", b"\x1b[1~"), "home"),
    **dict.fromkeys((b"\x1b[F", b"\x1bOF", b"\x1b[4~"), "end"),
    **dict.fromkeys((b"\r", b"\n"), "enter"),
    b"\x1b[5~": "page up",
    b"\x1b[6~": "page down",
    b"\x1b[Z": "back tab",
    b"\t": "tab",
    b"\x1b": "escape",
    b"\x03": "q",
}
_MAX_SEQUENCE = max(map(len, _SEQUENCES))


def parse_keys(data: bytes) -> Iterator[str]:
    """Yield the keys of some input: characters as they are, others by name; skip unknown ones."""
    while data:
        size = next(
            (
                size
                for size in range(min(_MAX_SEQUENCE, len(data)), 0, -1)
                if data[:size] in _SEQUENCES
            ),
            0,
        )
        if size:
            yield _SEQUENCES[data[:size]]
        elif data[:1].isascii() and data[:1].decode().isprintable():
            yield data[:1].decode()
        data = data[size or 1 :]


@contextmanager
def read_keys() -> Iterator[Keys]:
    """Yield keys as they are pressed, without an echo; restore the terminal afterwards.

    Raises:
        AioqlessError: if there is no terminal.
    """
    if sys.platform == "win32" or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise AioqlessError(
            "this takes a terminal of Linux or macOS; for programs there are `queues --json` and "
            "`tail --json`"
        )
    import termios

    loop, keys, descriptor = asyncio.get_running_loop(), Keys(), sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    now = termios.tcgetattr(descriptor)
    now[3] &= ~(termios.ICANON | termios.ECHO)
    now[6][termios.VSUSP] = b"\0"  # a suspended program would leave its screen
    termios.tcsetattr(descriptor, termios.TCSADRAIN, now)

    def read() -> None:
        data = os.read(descriptor, 1024)
        if not data:  # the terminal is gone
            loop.remove_reader(descriptor)
            keys.put_nowait("q")
        for key in parse_keys(data):
            keys.put_nowait(key)

    loop.add_reader(descriptor, read)
    try:
        yield keys
    finally:
        loop.remove_reader(descriptor)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
