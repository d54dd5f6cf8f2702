"""The job: it writes a receipt."""

from __future__ import annotations

from dataclasses import dataclass

import aioqless


@dataclass
class Line:
    """A line of an order."""

    name: str
    price: float
    count: int = 1


@dataclass
class Receipt:
    """The result."""

    order: int
    total: float


@aioqless.job(klass="shop.receipt", result_ttl=3600)
async def receipt(job: aioqless.Job, order: int, lines: list[Line]) -> Receipt:
    """Add up an order."""
    for number, line in enumerate(lines):
        job.progress(number / len(lines), line.name)
    return Receipt(order, sum(line.price * line.count for line in lines))
