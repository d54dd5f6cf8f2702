"""Breakdown: the klasses, tags and values of data that most jobs of a queue have."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from aioqless.client.client import Client
from aioqless.client.queue import Queue
from aioqless.client.queue_statistics import QueueCounts

PORTION, PORTIONS = 50, 10  # jobs of a sample, read at places that are evenly spread
SAMPLE = PORTION * PORTIONS
SAMPLED = ("waiting", "scheduled", "running", "depends")  # default: the first that has jobs
MAX_SHARES = 8
MAX_VALUE = 60  # characters of a field that is counted


@dataclass(frozen=True)
class Shares:
    """What jobs have in common, the most frequent first, each with the number of jobs.

    Attributes:
        sampled: Number of jobs.
        klasses: Their klasses.
        tags: Their tags.
        fields: Short values of the first level of their data, as `name=value`, of two jobs or more.
    """

    sampled: int
    klasses: list[tuple[str, int]]
    tags: list[tuple[str, int]]
    fields: list[tuple[str, int]]


def choose_state(counts: QueueCounts) -> str:
    """Return the first state in which a queue has jobs."""
    return next((each for each in SAMPLED if getattr(counts, each)), SAMPLED[0])


async def sample_jids(queue: Queue, state: str, total: int) -> list[str]:
    """Return jobs from all parts of a queue."""
    step = max(PORTION, -(-total // PORTIONS))
    pages = await asyncio.gather(
        *(queue.jids(state, offset=at, count=PORTION) for at in range(0, total, step))
    )
    return [jid for page in pages for jid in page]


def list_fields(data: str | None) -> list[str]:
    """Return the short values of the first level of data as `name=value`."""
    try:
        decoded = json.loads(data or "")
    except ValueError:
        return []
    return [
        text
        for name, value in (decoded.items() if isinstance(decoded, dict) else ())
        if isinstance(value, str | int) and len(text := f"{name}={value}") <= MAX_VALUE
    ]


async def read_shares(
    client: Client,
    jids: Sequence[str],
    fields_of: Callable[[str | None], Iterable[str]] = list_fields,
) -> Shares:
    """Count what jobs have in common.

    Args:
        client: The client.
        jids: The jobs.
        fields_of: Returns the fields of data that are counted.
    """
    jobs = await client.jobs.summaries(*jids) if jids else []
    fields = Counter(each for job in jobs for each in fields_of(job.data))
    return Shares(
        len(jobs),
        Counter(job.klass for job in jobs).most_common(MAX_SHARES),
        Counter(tag for job in jobs for tag in job.tags).most_common(MAX_SHARES),
        [each for each in fields.most_common(MAX_SHARES) if each[1] > 1],
    )
