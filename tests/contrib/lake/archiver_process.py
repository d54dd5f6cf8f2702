"""Archivers in processes of their own, for tests that kill them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Target:
    """What is archived, and where to."""

    redis_url: str
    namespace: str
    lake: str

    @property
    def arguments(self) -> list[str]:
        return [
            "lake", "archive",
            "--url", self.redis_url, "--namespace", self.namespace, "--lake", self.lake,
        ]  # fmt: skip


class ArchiverProcess:
    """An archiver whose output is kept."""

    def __init__(
        self, target: Target, *options: str, program: Iterable[str] = ("-m", "aioqless")
    ) -> None:
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, *program, *target.arguments, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._listener = threading.Thread(target=self._listen)
        self._listener.start()

    def _listen(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.append(line.rstrip())

    def batches(self) -> int:
        """The number of batches that it reported."""
        return sum(bool(re.match(r"batch up to entry", line)) for line in list(self.lines))

    def wait_for_batches(self, number: int, timeout: float = 900) -> None:
        wait_until(lambda: self.batches() >= number, timeout, self)

    def kill(self) -> None:
        self.process.kill()
        self.wait()

    def stop(self) -> int:
        self.process.terminate()
        return self.wait()

    def wait(self, timeout: float = 900) -> int:
        code = self.process.wait(timeout)
        self._listener.join()
        assert self.process.stdout
        self.process.stdout.close()
        return code

    def kill_executor(self) -> bool:
        """Kill one of its executors, which are processes; return whether there was one."""
        for pid in _descendants(self.process.pid):
            with suppress(OSError):  # it ended meanwhile
                if b"CoarseGrainedExecutorBackend" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)
                    return True
        return False


def wait_until(
    condition: Callable[[], object], timeout: float, archiver: ArchiverProcess | None = None
) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        lines = archiver.lines[-20:] if archiver else []
        if archiver and archiver.process.poll() is not None:
            raise AssertionError(f"the archiver ended: {lines}")
        if time.monotonic() > deadline:
            raise AssertionError(f"waited for {timeout} s in vain; the archiver wrote {lines}")
        time.sleep(0.05)


def _descendants(pid: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    children = [int(each) for each in found.stdout.split()]
    return [each for child in children for each in (child, *_descendants(child))]
