"""Resources of a process and of Redis, and whether they grow."""

from __future__ import annotations

import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aioqless import Client

PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Gauge:
    """A value that is read repeatedly.

    At the end it may be higher than at the start by a factor plus a constant.
    """

    name: str
    unit: float
    share: float
    more: float

    def grown(self, readings: Sequence[float]) -> str | None:
        """Describe what has grown too much between the first and the last third of the readings."""
        before, after = thirds(readings)
        most = before * (1 + self.share) + self.more
        return (
            f"{self.name} grew from {before / self.unit:.1f} to {after / self.unit:.1f}"
            if after > most
            else None
        )


MIB = 1024.0 * 1024
GAUGES = (
    Gauge("worker's memory, MiB", MIB, 0.05, 4 * MIB),
    Gauge("worker's descriptors", 1, 0, 4),
    Gauge("client's memory, MiB", MIB, 0.05, 4 * MIB),
    Gauge("client's descriptors", 1, 0, 4),
    Gauge("Redis' memory, MiB", MIB, 0.15, 1 * MIB),
    Gauge("Redis' keys", 1, 0.15, 200),
)


async def read(client: Client, worker: int) -> dict[str, float]:
    """Read all gauges."""
    memory, keys = (await client.redis.info("memory"))["used_memory"], await client.redis.dbsize()
    values = (*_process(worker), *_process(os.getpid()), float(memory), float(keys))
    return dict(zip((gauge.name for gauge in GAUGES), values, strict=True))


def thirds(readings: Sequence[float]) -> tuple[float, float]:
    """Return the medians of the first and of the last third."""
    third = max(1, len(readings) // 3)
    return statistics.median(readings[:third]), statistics.median(readings[-third:])


def growth(readings: Sequence[Mapping[str, float]]) -> list[str]:
    """Return a description of each gauge that has grown too much."""
    found = (gauge.grown([reading[gauge.name] for reading in readings]) for gauge in GAUGES)
    return [line for line in found if line]


def _process(pid: int) -> tuple[float, float]:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * float(PAGE), float(len(list(Path(f"/proc/{pid}/fd").iterdir())))
