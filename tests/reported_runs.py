"""Beats with counts of runs, as workers send them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from typing import Any

from aioqless import Client
from aioqless.client.run_buckets import UNITS, WAITS

_numbers = itertools.count(1)


def run_values(runs: int, *, failures: int = 0, seconds: float = 1.0) -> list[int]:
    """Return what a worker reports of runs of a second."""
    return [failures, 0, round(runs * seconds * UNITS), 0, 19, runs, WAITS + 3, runs]


async def report_runs(
    client: Client,
    now: float,
    rows: Iterable[tuple[str, str, list[int]]] = (),
    *,
    worker: str = "ann",
    id: str = "1",
    number: int | None = None,
    queues: Sequence[str] = (),
    **facts: Any,
) -> None:
    """Send a beat with counts: rows of queue, klass and values; `facts` are those of the worker."""
    process = {"id": id, "memory": 1 << 20, "busy": 2, **facts}
    await client.internals.store.beat(
        worker=worker,
        now=now,
        queues=queues,
        process=json.dumps(process).encode(),
        number=next(_numbers) if number is None else number,
        counts=json.dumps(list(rows)),
    )
