"""Handlers of a shop, as sample data: some jobs fail, some wait, some recur."""

from __future__ import annotations

import asyncio
import random

import aioqless


class CardRefused(Exception):
    """The bank refused the payment."""


@aioqless.job(klass="shop.billing.charge")
async def charge(job: aioqless.Job, invoice: int, amount: str) -> aioqless.Next | None:
    if job.queue == "ledger":
        return None
    await asyncio.sleep(random.random() * 0.05)
    cents = round(float(amount) * 100)
    if cents > 500_00:
        raise CardRefused(
            f"invoice {invoice}: the bank refused {amount}, the card's limit is 500.00"
        )
    job.data["charged"] = cents
    return aioqless.Next("ledger")


@aioqless.job(klass="shop.mail.send_receipt", retries=3)
async def send_receipt(job: aioqless.Job, to: str) -> None:
    await asyncio.sleep(0.002)
    if "@" not in to:
        raise ValueError(f"{to!r} is no address")


@aioqless.job(klass="shop.pictures.resize")
async def resize(job: aioqless.Job, path: str, width: int = 100) -> None:
    for part in range(4):
        job.progress(part / 4, f"part {part + 1} of 4")
        await asyncio.sleep(0.02)


@aioqless.job(klass="shop.stock.count")
async def count(job: aioqless.Job, shelf: str) -> None:
    await asyncio.sleep(60)


@aioqless.job(
    klass="shop.reports.daily", cron="0 6 * * mon-fri", timezone="Europe/Paris", queue="reports"
)
async def daily(job: aioqless.Job) -> None:
    pass


@aioqless.job(klass="shop.reports.hourly", every=3600, queue="reports")
async def hourly(job: aioqless.Job) -> None:
    pass
