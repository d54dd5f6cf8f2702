"""Jobs that were handed out long ago when they get here: the line was slow, or the loop was blocked
while they came."""

from __future__ import annotations

from typing import Any

from aioqless.client.job.record import record_of_row
from aioqless.errors import ScriptError
from aioqless.log import log
from aioqless.store import Store
from aioqless.worker.outage import NOT_NOW

LATE = (
    0.5  # seconds from asking to having, after which locks are looked at before anything is begun
)


async def still_held(store: Store, worker: str, rows: list[Any]) -> list[Any]:
    """Renew the locks of jobs that came late; returns those that are still this worker's. What
    another has taken over meanwhile would only run twice."""
    records = [record_of_row(row) for row in rows]
    batch = [{"jid": record["jid"], "fence": record["fence"]} for record in records]
    try:
        answers = await store.heartbeat_many(worker=worker, batch=batch)
    except NOT_NOW:  # unknown until Redis is back; then the heart finds out
        return rows
    for record, answer in zip(records, answers, strict=True):
        if isinstance(answer, ScriptError):
            log.warning(
                "job.stale_pop_dropped",
                jid=record["jid"],
                klass=record["klass"],
                queue=record["queue"],
                why=str(answer),
            )
    return [
        row
        for row, answer in zip(rows, answers, strict=True)
        if not isinstance(answer, ScriptError)
    ]
