"""Where the processor time of one job is spent: by Redis command and by the worker's source file.

The worker's share of each file comes from samples of py-spy.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.bench import phases
from tests.bench.micro import run_micro
from tests.bench.peers import PEERS, ROOT, Figures, Setup
from tests.bench.server import Server, server

SECONDS = 10.0  # seconds of sampling a busy worker
RATE = 200  # samples per second
PACKAGE = f"{ROOT / 'aioqless'}/"
LOOP = "event loop"
SMALL = 0.02  # smaller shares are shown as one


def run_cost(jobs: int) -> Figures:
    """Return {redis: {command: µs}, worker: {file: µs}} per job of a busy worker."""
    commands = run_micro(min(jobs, 6_000))["commands"]
    with server() as started, tempfile.TemporaryDirectory(prefix="aioqless-bench-") as folder:
        stand = Setup(PEERS[0], started, Path(folder))
        figures = phases.drain(stand, "noop", jobs)
        started.empty()
        shares = _sampled(
            stand, started, Path(folder) / "samples", int(figures["rate"] * (SECONDS + 2))
        )
        return {
            "redis": {
                command: commands[command]["100"]["redis_us"]
                for command in ("put", "pop", "complete")
            },
            "worker": {place: share * figures["worker_us"] for place, share in shares.items()},
            "versions": started.version(),
        }


def _sampled(stand: Setup, server: Server, file: Path, jobs: int) -> dict[str, float]:
    """Return the share of each of our files in a busy worker's time, the largest first."""
    stand.put("many", "noop", jobs)
    server.redis.config_resetstat()
    with stand.worker() as pid:
        while not server.script_seconds():  # py-spy cannot attach before the process has started
            time.sleep(0.05)
        command = [
            "py-spy",
            "record",
            "--pid",
            str(pid),
            "-d",
            str(int(SECONDS)),
            "-r",
            str(RATE),
            "-f",
            "raw",
            "-o",
            str(file),
        ]
        program = str(Path(sys.executable).with_name(command[0]))
        ended = subprocess.run([program, *command[1:]], capture_output=True, text=True, check=False)
        if ended.returncode:
            raise RuntimeError(
                f"py-spy could not look into the worker (it may need root): "
                f"{ended.stderr.strip()[-500:]}"
            )
    counts: Counter[str] = Counter()
    for line in file.read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        if (
            "(threading.py" not in stack
        ):  # the lock renewer's thread waits, and is sometimes reported as busy
            counts[_place(stack)] += int(count)
    return _shares(counts)


def _place(stack: str) -> str:
    """Return our file of the innermost frame.

    Time in libraries counts for the file that calls them.
    """
    for frame in reversed(stack.split(";")):
        path = frame.rpartition("(")[2]
        if "tests/bench/" in path:
            return "the handler"
        if PACKAGE in path or path.startswith("aioqless/"):
            place = path.partition("aioqless/")[2].partition(":")[0].partition(")")[0]
            return (
                LOOP if place.startswith("cli/") else place
            )  # frames above the command line are the event loop
    return LOOP


def _shares(counts: Counter[str]) -> dict[str, float]:
    total = sum(counts.values()) or 1
    large = {
        place: count / total for place, count in counts.most_common() if count / total >= SMALL
    }
    return large | {"others": 1 - sum(large.values())}
