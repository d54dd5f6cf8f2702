"""The handlers: with a tenant and without, they import a row alike."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

import aioqless
from aioqless import Job


@dataclass
class Start:
    """When a row was started, and how long it had waited."""

    customer: str
    at: float
    lag: float


started: asyncio.Queue[Start] = asyncio.Queue()


@aioqless.job(queue="imports", fair=aioqless.Fair(("customer",)))
async def load(_: Job, customer: str, put_at: float) -> None:
    """Import a row; customers start theirs in turns."""
    now = time.monotonic()
    started.put_nowait(Start(customer, now, now - put_at))
    await asyncio.sleep(0.02)  # write it to the database


@aioqless.job(queue="imports")
async def load_in_order(job: Job, customer: str, put_at: float) -> None:
    """Import a row; rows start in the order in which they were put."""
    await load(job, customer, put_at)
