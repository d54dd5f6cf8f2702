"""What a process and Redis take, and whether it grows."""

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
    """One thing that is read again and again: it may end higher than it began by a share of it, and
    so much more."""

    name: str
    unit: float
    share: float
    more: float

    def grown(self, readings: Sequence[float]) -> str | None:
        """What is wrong with the readings: the last third, beside the first."""
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
    """All gauges now."""
    memory, keys = (await client.redis.info("memory"))["used_memory"], await client.redis.dbsize()
    values = (*_process(worker), *_process(os.getpid()), float(memory), float(keys))
    return dict(zip((gauge.name for gauge in GAUGES), values, strict=True))


def thirds(readings: Sequence[float]) -> tuple[float, float]:
    """The medians of the first and of the last third."""
    third = max(1, len(readings) // 3)
    return statistics.median(readings[:third]), statistics.median(readings[-third:])


def growth(readings: Sequence[Mapping[str, float]]) -> list[str]:
    """What has grown."""
    found = (gauge.grown([reading[gauge.name] for reading in readings]) for gauge in GAUGES)
    return [line for line in found if line]


def _process(pid: int) -> tuple[float, float]:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * float(PAGE), float(len(list(Path(f"/proc/{pid}/fd").iterdir())))
