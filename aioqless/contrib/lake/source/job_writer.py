"""Puts prepared rows into their queues: in batches, within a maximum depth, and each once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from aioqless.client import Client, PutManyRow
from aioqless.client.put_sender import Backpressure
from aioqless.contrib.lake.source.options import SaveOptions
from aioqless.contrib.lake.source.row_mapping import Reject, RowMapping, format_row
from aioqless.errors import AioqlessError, QueueFull

_MIN_PORTION = 50  # jobs that are put at once, if there is room


@dataclass
class PutCounts:
    """What a task did with its rows; `existing` counts those whose jobs existed already."""

    put: int = 0
    existing: int = 0
    rejects: list[Reject] = field(default_factory=list)


async def put_rows(
    client: Client, mapping: RowMapping, options: SaveOptions, batches: Iterable[pa.RecordBatch]
) -> PutCounts:
    """Put the rows of a task.

    Raises:
        AioqlessError: More rows than allowed can't be jobs.
        QueueFull: A queue had no room for longer than allowed.
    """
    counts = PutCounts()
    for batch in batches:
        queues: dict[str, list[PutManyRow]] = {}
        for prepared in mapping.jobs(batch, client.codec):
            if isinstance(prepared, Reject):
                counts.rejects.append(prepared)
            else:
                queues.setdefault(prepared[0], []).append(prepared[1])
        _check_rejects(counts, options)
        for queue, jobs in queues.items():
            await _put(client, queue, jobs, options, counts)
        _check_rejects(counts, options)
    return counts


async def _put(
    client: Client, queue: str, jobs: list[PutManyRow], options: SaveOptions, counts: PutCounts
) -> None:
    backpressure = Backpressure(options.wait)
    async for portion in _await_room(client, queue, jobs, options.max_depth, backpressure):
        answers = await client.queue(queue).put_encoded(
            portion, wait=backpressure.left, keep_existing=True
        )
        for job, answer in zip(portion, answers, strict=True):
            if isinstance(answer, QueueFull):
                raise answer
            if isinstance(answer, Exception):
                counts.rejects.append(_reject(job, queue, answer))
            elif answer:
                counts.put += 1
            else:
                counts.existing += 1


def _reject(job: PutManyRow, queue: str, error: Exception) -> Reject:
    data = job["data"]
    text = data if isinstance(data, str) else data.decode("utf-8", "replace")
    fields = {**job, "data": text, "queue": queue}
    return Reject(str(error), format_row({k: v for k, v in fields.items() if v is not None}))


async def _await_room(
    client: Client,
    queue: str,
    jobs: list[PutManyRow],
    depth: int | None,
    backpressure: Backpressure,
) -> AsyncIterator[list[PutManyRow]]:
    """Yield as many jobs at a time as a queue has room for.

    Other tasks put, too, so the queue may get a few more than `depth`.
    """
    if depth is None:
        yield jobs
        return
    at = 0
    while at < len(jobs):
        room = depth - await client.queue(queue).length()
        if room <= 0:
            if not await backpressure.pause():
                raise AioqlessError(
                    f"the queue {queue!r} had {depth:,} jobs or more for longer than the option "
                    "wait allows, in seconds"
                )
            continue
        count = min(room, max(_MIN_PORTION, depth // 4))
        yield jobs[at : at + count]
        at += count


def _check_rejects(counts: PutCounts, options: SaveOptions) -> None:
    rejects, allowed = counts.rejects, options.max_rejects if options.rejects else 0
    if len(rejects) <= allowed:
        return
    rows = f"{len(rejects):,} rows of one task" if len(rejects) > 1 else "a row"
    advice = (
        f"maxRejects allows {allowed:,}"
        if allowed
        else "The option rejects names a folder that such rows are written to instead"
    )
    raise AioqlessError(
        f"{rows} can't be put as jobs, such as {rejects[0].row[:200]}: {rejects[0].reason}. "
        + advice
    )
