"""Measurements in a job, in the client around its puts, and of processes from outside.

Needs only the standard library: this module runs in the environment of every library.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")


def expected() -> int:
    """Return how many jobs the worker of this environment must count."""
    return int(os.environ.get("BENCH_JOBS", "0"))


def out() -> Path:
    """Return the file that jobs of this environment write to."""
    return Path(os.environ.get("BENCH_OUT", "/dev/null"))


class Tally:
    """Counts the jobs of one worker process and writes the times of the first start and last end.

    A moment is {time, cpu}: wall-clock time, and the processor time of the worker's whole session,
    both in seconds.
    """

    def __init__(self, jobs: int, path: Path) -> None:
        self._jobs = jobs
        self._path = path
        self._started = 0
        self._ended = 0
        self._first: dict[str, float] = {}

    def start(self) -> None:
        self._started += 1
        if self._started == 1:
            self._first = moment()

    def end(self) -> None:
        self._ended += 1
        if self._ended == self._jobs:
            draft = self._path.with_suffix(".draft")
            draft.write_text(
                json.dumps({"first": self._first, "last": moment(), "pid": os.getpid()})
            )
            draft.replace(self._path)


class Delays:
    """Collects how long each job waited, and writes all of it when the last has come."""

    def __init__(self, jobs: int, path: Path) -> None:
        self._jobs = jobs
        self._path = path
        self._delays: list[float] = []

    def add(self, seconds: float) -> None:
        self._delays.append(seconds)
        if len(self._delays) == self._jobs:
            draft = self._path.with_suffix(".draft")
            draft.write_text(json.dumps({"delays": self._delays}))
            draft.replace(self._path)


def note(value: float) -> None:
    """Append a figure to the file."""
    with out().open("a") as file:
        file.write(f"{value!r}\n")


def moment() -> dict[str, float]:
    return {"time": time.time(), "cpu": session_cpu(os.getsid(0))}


def session_cpu(session: int) -> float:
    """Return the user and system seconds of a session's processes and their ended children."""
    return (
        sum(sum(map(int, stat[11:15])) for stat in _stats().values() if int(stat[3]) == session)
        / TICK
    )


def session_pids(session: int) -> list[int]:
    """Return the pids of a session's living processes."""
    return [pid for pid, stat in _stats().items() if int(stat[3]) == session and stat[0] != "Z"]


def rss(pid: int) -> float:
    """Return the resident memory of a process in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS:")).split()[1]) / 1024


def _stats() -> dict[int, list[str]]:
    """Yield the fields of each process' /proc/pid/stat after its name, which may contain blanks."""
    stats: dict[int, list[str]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stats[int(folder.name)] = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # the process has ended meanwhile
                continue
    return stats
