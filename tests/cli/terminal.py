"""A pseudo-terminal for tests: its screen and its keys."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pexpect
import pyte

PATIENCE = 60.0  # seconds, on a busy machine


class Terminal:
    """A process on a terminal of a given size. `text` is the current screen."""

    def __init__(
        self,
        arguments: list[str],
        environment: Mapping[str, str],
        folder: Path,
        size: tuple[int, int],
    ) -> None:
        columns, lines = size
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self._screen)
        self.raw = b""
        env: Any = {**environment, "TERM": "xterm-256color"}
        for name in ("COLUMNS", "LINES", "NO_COLOR"):
            env.pop(name, None)
        self._process = pexpect.spawn(
            sys.executable,
            arguments,
            env=env,
            cwd=str(folder),
            dimensions=(lines, columns),
            timeout=None,
        )

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self._screen.display)

    @property
    def lines(self) -> list[list[pyte.screens.Char]]:
        """Return the screen with its colors."""
        return [
            [self._screen.buffer[line][column] for column in range(self._screen.columns)]
            for line in range(self._screen.lines)
        ]

    def press(self, keys: str) -> None:
        self._process.send(keys)

    def resize(self, columns: int, lines: int) -> None:
        self._screen.resize(lines, columns)
        self._screen.erase_in_display(2)  # what is seen from now on was drawn for this size
        self._process.setwinsize(lines, columns)

    def signal(self, number: int) -> None:
        self._process.kill(number)

    def modes(self) -> Any:
        import termios

        return termios.tcgetattr(self._process.child_fd)

    def read_output(self) -> None:
        """Read the output up to now."""
        while True:
            try:
                data = self._process.read_nonblocking(65536, timeout=0)
            except (pexpect.TIMEOUT, pexpect.EOF):
                return
            self.raw += data
            self._stream.feed(data)

    async def shows(self, *texts: str | re.Pattern[str], without: str | None = None) -> str:
        """Wait until the screen contains all texts and patterns, and not `without`.

        The rest of the screen that is returned may be half drawn.

        Raises AssertionError with the screen.
        """
        wanted = [re.escape(each) if isinstance(each, str) else each for each in texts]
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    self.read_output()
                    if all(re.search(each, self.text) for each in wanted) and (
                        without is None or without not in self.text
                    ):
                        return self.text
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(
                f"{texts} without {without} not seen in {PATIENCE} s, but:\n{self.text}"
            ) from None

    async def ended(self, patience: float = PATIENCE) -> int:
        """Wait for the process' end and return its exit code; 128 + n for a signal."""
        try:
            async with asyncio.timeout(patience):
                while self._process.isalive():
                    self.read_output()
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(
                f"it has not ended in {patience} s; it shows\n{self.text}"
            ) from None
        self.read_output()
        code, number = self._process.exitstatus, self._process.signalstatus
        return 128 + number if number else code or 0

    def close(self) -> None:
        if self._process.isalive():
            self._process.kill(signal.SIGKILL)
            self._process.wait()
        self._process.close()


@asynccontextmanager
async def terminal(
    *arguments: str,
    environment: Mapping[str, str] = os.environ,
    folder: Path | None = None,
    size: tuple[int, int] = (130, 40),
) -> AsyncIterator[Terminal]:
    """Start a command on a terminal: `async with terminal("top") as screen`.

    A process that still runs at the end of the block is killed.
    """
    screen = Terminal(["-m", "aioqless", *arguments], environment, folder or Path.cwd(), size)
    try:
        yield screen
    finally:
        screen.close()
