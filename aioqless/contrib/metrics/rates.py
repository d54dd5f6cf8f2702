"""Rates of queues between two samples of their totals."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from aioqless.client.queue_statistics import QueueOverview


class Rates(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Jobs per second between two samples of a queue."""

    completed: float = 0.0
    failed: float = 0.0


def rates_between(
    before: Iterable[QueueOverview], after: Iterable[QueueOverview], seconds: float
) -> dict[str, Rates]:
    """Compute the rates of each queue between two samples.

    The totals start again at 0 each day (UTC), so counts just before midnight are missing. A
    queue that is missing in the earlier sample counts from 0.
    """
    earlier = {queue.name: queue for queue in before}
    rates: dict[str, Rates] = {}
    for queue in after:
        was = earlier.get(queue.name) or QueueOverview(name=queue.name)
        rates[queue.name] = Rates(
            completed=_growth(was.completed, queue.completed) / seconds,
            failed=_growth(was.failures, queue.failures) / seconds,
        )
    return rates


def _growth(before: int, after: int) -> int:
    return after - before if after >= before else after
