"""Handlers of the tests, with every kind of type."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TypedDict

from pydantic import BaseModel, Field

import aioqless
from aioqless import Job


class Line(BaseModel):
    """Of pydantic."""

    name: str
    count: int = Field(default=1, ge=1)


@dataclass
class Order:
    """Of the standard library, with one of pydantic's within."""

    number: int
    lines: list[Line] = field(default_factory=list)


class Total(TypedDict):
    """A result."""

    number: int
    count: int


@aioqless.job(klass="shop.greet", result_ttl=3600)
async def greet(job: Job, name: str, times: int = 1) -> str:
    """Take parameters."""
    job.progress(0.5, "writing")
    return f"Hello {name}" * times


@aioqless.job(klass="shop.total", result_ttl=3600)
async def total(job: Job, order: Order, first: Line | None = None) -> Total:
    """Take an order."""
    return {"number": order.number, "count": sum(line.count for line in order.lines)}


@aioqless.job(klass="shop.whole")
async def whole(job: Job[Order]) -> None:
    """Take the data as a whole, and keep no result."""


@aioqless.job(klass="back.greet", retries=0)
async def fail(job: Job) -> None:
    """Take any data, and fail; its last name is that of another klass."""
    raise RuntimeError(f"no {job.data}")


@aioqless.job(klass="shop.once", unique=("name",), result_ttl=3600)
async def once(job: Job, name: str) -> None:
    """Have a unique key."""


@aioqless.job(klass="shop.ask", result_ttl=3600)
async def ask(job: Job, question: str) -> str:
    """Emit output, and wait for a signal."""
    job.emit(question)
    answer: str = await job.wait_for("answer", str)
    job.emit(answer)
    return answer


@aioqless.job(klass="shop.slow")
async def slow(job: Job) -> None:
    """Run until it is canceled."""
    await asyncio.Event().wait()
