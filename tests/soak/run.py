"""A soak test: a worker process, a client that uses all features, and gauges."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aioqless import Client
from tests.server import OwnServer
from tests.soak.gauges import growth, read
from tests.soak.load import load

# The retention is some seconds, so that the number of ended jobs stops growing soon.
KEPT = {"jobs-history-count": 500, "failed-history": 3, "heartbeat": 5}


@dataclass
class SoakResult:
    """The number of jobs that were put, and the gauges' readings after the warm-up."""

    jobs: int = 0
    seconds: float = 0.0
    readings: list[dict[str, float]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


async def soak(seconds: float, warm: float, every: float) -> SoakResult:
    """Run the load for some seconds, and read the gauges after `warm` seconds."""
    soaked = SoakResult(seconds=seconds)
    with tempfile.TemporaryDirectory(prefix="aioqless-soak-") as folder:
        server = OwnServer(Path(folder))
        await asyncio.to_thread(server.start)
        try:
            async with Client(server.url) as client:
                for option, value in KEPT.items():
                    await client.config.set(option, value)
                with _worker(server.url, Path(folder) / "worker.log") as pid:
                    first = await client.queue("soak").put("soak.act", {"how": "plain"})
                    # memory used by starting is not growth
                    await client.jobs.wait(first, timeout=60)
                    loading = asyncio.create_task(load(client, seconds, random.Random(7)))
                    began = time.monotonic()
                    while not loading.done():
                        await asyncio.wait([loading], timeout=every)
                        if time.monotonic() - began >= warm and not loading.done():
                            soaked.readings.append(await read(client, pid))
                    soaked.jobs = await loading
                soaked.wrong = [*growth(soaked.readings), *map(str, await client.check())]
        finally:
            server.kill()
    return soaked


@contextmanager
def _worker(url: str, log: Path) -> Iterator[int]:
    command = [
        sys.executable,
        "-m",
        "aioqless",
        "worker",
        "tests.soak.jobs",
        "-q",
        "soak",
        "-q",
        "soaked",
        "--url",
        url,
    ]
    with log.open("wb") as lines:
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)
        }
        process = subprocess.Popen(
            [*command, "--log-level", "error"], stderr=lines, env=environment
        )
    try:
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(40)
