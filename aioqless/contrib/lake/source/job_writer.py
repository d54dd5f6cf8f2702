"""Jobs into their queues: in bounded batches, no faster than a queue may grow, and none twice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from aioqless.client import Client
from aioqless.client.put import Backpressure, PreparedJob
from aioqless.contrib.lake.source.options import Options
from aioqless.contrib.lake.source.row_mapping import Recipe, Reject, shown
from aioqless.errors import AioqlessError, QueueFull

OPTIONS = ("maxDepth", "wait", "rejects", "maxRejects")


@dataclass(frozen=True)
class Limits:
    """How many jobs a queue may have before this write waits, for how many seconds it does, and how
    many rows may be no jobs."""

    depth: int | None = None
    wait: float = 3600.0
    rejects: int = 0

    @classmethod
    def of(cls, options: Options) -> Limits:
        most = options.whole("maxRejects", 10_000, least=0) or 0
        wait = options.number("wait", 3600.0)
        assert wait is not None
        Backpressure(wait)
        return cls(options.whole("maxDepth", None), wait, most if options.text("rejects") else 0)


@dataclass
class Tally:
    """What became of a task's rows; `there` are those whose jobs were there already."""

    put: int = 0
    there: int = 0
    rejects: list[Reject] = field(default_factory=list)


async def put_rows(
    client: Client, recipe: Recipe, limits: Limits, batches: Iterable[pa.RecordBatch]
) -> Tally:
    """Put the rows of a task. Raises AioqlessError when more of them are no jobs than may be,
    QueueFull when there was no room."""
    tally = Tally()
    for batch in batches:
        queues: dict[str, list[PreparedJob]] = {}
        for made in recipe.jobs(batch, client.codec):
            if isinstance(made, Reject):
                tally.rejects.append(made)
            else:
                queues.setdefault(made[0], []).append(made[1])
        _check(tally, limits)
        for queue, jobs in queues.items():
            await _put(client, queue, jobs, limits, tally)
        _check(tally, limits)
    return tally


async def _put(
    client: Client, queue: str, jobs: list[PreparedJob], limits: Limits, tally: Tally
) -> None:
    backpressure = Backpressure(limits.wait)
    async for portion in _with_room(client, queue, jobs, limits.depth, backpressure):
        answers = await client.queue(queue).put_prepared(
            portion, wait=backpressure.left, keep_existing=True
        )
        for job, answer in zip(portion, answers, strict=True):
            if isinstance(answer, QueueFull):
                raise answer
            if isinstance(answer, Exception):
                data = job["data"]
                text = data if isinstance(data, str) else data.decode("utf-8", "replace")
                told = {**job, "data": text, "queue": queue}
                tally.rejects.append(
                    Reject(
                        str(answer),
                        shown({name: value for name, value in told.items() if value is not None}),
                    )
                )
            elif answer:
                tally.put += 1
            else:
                tally.there += 1


async def _with_room(
    client: Client,
    queue: str,
    jobs: list[PreparedJob],
    depth: int | None,
    backpressure: Backpressure,
) -> AsyncIterator[list[PreparedJob]]:
    """As many at a time as a queue has room for; other tasks put too, so it may get some more than
    `depth`."""
    if depth is None:
        yield jobs
        return
    at = 0
    while at < len(jobs):
        room = depth - await client.queue(queue).length()
        if room <= 0:
            if not await backpressure.pause():
                raise AioqlessError(
                    f"the queue {queue!r} had {depth:,} jobs or more for longer than wait, which says how many seconds"
                )
            continue
        yield jobs[at : at + min(room, max(50, depth // 4))]
        at += min(room, max(50, depth // 4))


def _check(tally: Tally, limits: Limits) -> None:
    if len(tally.rejects) > limits.rejects:
        many = f"{len(tally.rejects):,} rows of one task" if len(tally.rejects) > 1 else "a row"
        raise AioqlessError(
            f"{many} can't be put as jobs, such as {tally.rejects[0].row[:200]}: {tally.rejects[0].reason}. "
            + (
                f"maxRejects allows {limits.rejects:,}"
                if limits.rejects
                else "With the option rejects, a folder, they go there instead"
            )
        )
