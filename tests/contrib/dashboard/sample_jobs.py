"""Sample jobs of a shop on a working day, for browser tests and screenshots."""

from __future__ import annotations

import random
import time

from aioqless import Client
from aioqless.client.run_buckets import RUN_BUCKETS, bucket_of
from aioqless.worker.run_counts import Series
from tests.contrib.dashboard import jobs
from tests.reported_runs import report_runs

BROKEN = "ada.lovelace.example.com"


async def put_day(client: Client, scale: int = 1) -> None:
    """Put a day's jobs; some fail, wait, are scheduled or blocked, the others complete."""
    billing, mail, pictures, stock = (
        client.queue(name) for name in ("billing", "mail", "pictures", "stock")
    )
    dice = random.Random(7)
    invoices = [
        jobs.charge.data(
            invoice=4000 + number,
            amount=f"{dice.choice([12.5, 49, 99.9, 240, 1250 if number % 9 == 0 else 30]):.2f}",
        )
        for number in range(60 * scale)
    ]
    await billing.put_many(invoices)
    await mail.put_many(
        jobs.send_receipt.data(to=f"customer{number}@example.com") for number in range(300 * scale)
    )
    for number in range(3):
        await mail.put(
            jobs.send_receipt.data(to=BROKEN),
            tags=["welcome"] if number else ["welcome", "vip"],
            priority=-number,
        )
    for number in range(40 * scale):
        await pictures.put(
            jobs.resize.data(path=f"catalogue/{number:04}.jpg", width=480), tags=["catalogue"]
        )
    for number in range(12):
        await mail.put(
            jobs.send_receipt.data(to=f"later{number}@example.com"), delay=3600 + 60 * number
        )
    for shelf in "ABCD":
        await stock.put(jobs.count.data(shelf=shelf))


async def _report_minute(client: Client, when: float, ago: int, dice: random.Random) -> None:
    """Report what a worker would have run in a minute of the last hours."""
    rows: list[tuple[str, str, list[int]]] = []
    for queue, klass, usual, seconds in (
        ("mail", "shop.mail.send_receipt", 1500, 0.05),
        ("pictures", "shop.pictures.resize", 800, 0.4),
        ("billing", "shop.billing.charge", 180, 0.2),
    ):
        counts, rush = Series(), 1.6 if 180 < ago < 260 else 1.0
        runs = round(usual * rush * (0.8 + 0.4 * dice.random()))
        counts.run_seconds = runs * seconds
        counts.buckets = {bucket_of(seconds, RUN_BUCKETS): runs}
        counts.failures = dice.randint(0, 6) if queue == "mail" and 180 < ago < 260 else 0
        counts.failures += dice.randint(2, 7) if ago < 70 and queue == "billing" else 0
        rows.append((queue, klass, counts.values()))
    await report_runs(
        client, when, rows, worker="web-1.shop-7421", memory=64 << 20, busy=3,
        version="v41" if ago > 70 else "v42",
    )  # fmt: skip


async def put_past_days(url: str) -> None:
    """Put statistics of the previous days, and failures of the previous hours."""
    now, dice = time.time(), random.Random(5)
    clock = [now]
    async with Client(url, clock=lambda: clock[0]) as client:
        for queue, usual in (("mail", 480), ("pictures", 240), ("billing", 90)):
            for ago in range(13, 0, -1):
                for _ in range(6):
                    clock[0] = now - ago * 86400 + dice.random() * 3600
                    count = round(
                        usual / 6 * (0.5 + dice.random()) * (0.4 if ago % 7 in (1, 2) else 1)
                    )
                    await _done(client, queue, count, clock, dice)
        for minute in range(479, 2, -1):
            await _report_minute(client, now - minute * 60, minute, dice)
        for hour in range(23, 0, -1):
            clock[0] = now - hour * 3600
            bad = {
                "mail": (
                    "mail-SMTPError",
                    "smtplib.SMTPServerDisconnected: Connection unexpectedly closed",
                    9 if 4 < hour < 8 else dice.randint(0, 2),
                )
            }
            bad["pictures"] = (
                "pictures-timeout",
                "it took longer than 120 s",
                dice.randint(0, 3) if hour < 15 else 0,
            )
            bad["billing"] = (
                "billing-CardRefused",
                "CardRefused: the bank refused 1250.00, the card's limit is 500.00",
                int(hour % 5 == 0),
            )
            for queue, (group, message, count) in bad.items():
                await client.queue(queue).put_many(
                    [KLASSES[queue].data(**DATA[queue]) for _ in range(count)]  # type: ignore[attr-defined]
                )
                for job in (
                    await client.queue(queue).pop(count, worker="web-2.shop-6102") if count else ()
                ):
                    await job.fail(
                        f'Traceback (most recent call last):\n  File "shop/{queue}.py", line 31, '
                        f"in work\n{message}",
                        group=group,
                    )
        await client.workers.deregister("web-2.shop-6102")


async def _done(
    client: Client, queue: str, count: int, clock: list[float], dice: random.Random
) -> None:
    await client.queue(queue).put_many([KLASSES[queue].data(**DATA[queue]) for _ in range(count)])  # type: ignore[attr-defined]
    clock[0] += dice.expovariate(0.4)
    for job in await client.queue(queue).pop(count, worker="web-2.shop-6102"):
        clock[0] += dice.expovariate(0.7)
        if dice.random() < 0.03:
            await job.fail("long since mended", group="old")
            await client.jobs.cancel(job.jid)
        else:
            await job.complete()


KLASSES = {"mail": jobs.send_receipt, "pictures": jobs.resize, "billing": jobs.charge}
DATA: dict[str, dict[str, str | int]] = {
    "mail": {"to": "customer@example.com"}, "pictures": {"path": "catalogue/0001.jpg"},
    "billing": {"invoice": 4711, "amount": "12.50"},
}  # fmt: skip
