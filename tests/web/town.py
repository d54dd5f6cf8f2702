"""A shop with its queues as they are on a working day: for the browser's tests, and for the pictures in the docs."""

from __future__ import annotations

import random

from aioqless import Client

from . import jobs

BROKEN = "ada.lovelace.example.com"


async def put_a_days_work(client: Client, scale: int = 1) -> None:
    """Jobs that a worker with `jobs` completes, but for some that fail, wait, are scheduled or held."""
    billing, mail, pictures, stock = (client.queue(name) for name in ("billing", "mail", "pictures", "stock"))
    dice = random.Random(7)
    invoices = [
        jobs.charge.data(invoice=4000 + number, amount=f"{dice.choice([12.5, 49, 99.9, 240, 1250 if number % 9 == 0 else 30]):.2f}")
        for number in range(60 * scale)
    ]
    await billing.put_many(invoices)
    await mail.put_many(jobs.send_receipt.data(to=f"customer{number}@example.com") for number in range(300 * scale))
    for number in range(3):
        await mail.put(jobs.send_receipt.data(to=BROKEN), tags=["welcome"] if number else ["welcome", "vip"], priority=-number)
    for number in range(40 * scale):
        await pictures.put(jobs.resize.data(path=f"catalogue/{number:04}.jpg", width=480), tags=["catalogue"])
    for number in range(12):
        await mail.put(jobs.send_receipt.data(to=f"later{number}@example.com"), delay=3600 + 60 * number)
    for shelf in "ABCD":
        await stock.put(jobs.count.data(shelf=shelf))
