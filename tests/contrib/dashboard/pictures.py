"""Make the screenshots of the dashboard: `python -m tests.contrib.dashboard.pictures`."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from playwright.async_api import Browser, expect

from aioqless import Client
from aioqless.contrib.dashboard import create_app
from aioqless.runtime import log
from aioqless.testing import server
from tests.contrib.dashboard import jobs
from tests.contrib.dashboard.conftest import ENTER, OPEN, browsing, served, worked
from tests.contrib.dashboard.sample_jobs import BROKEN, put_day, put_past_days
from tests.programs import find

DOCS = Path(__file__).parents[3] / "docs"
SIZE = {"width": 1240, "height": 860}
A_WHILE = 100  # seconds of work before the screenshots are taken, so that charts show something


async def main() -> None:
    log.write_to(level="error")
    jobs.CardRefused.__module__ = "shop.billing"
    with server() as url:
        await put_past_days(url)
        async with (
            Client(url) as client,
            worked(client),
            served(create_app(client, identify=OPEN)) as address,
            browsing(find("chromium") or "chromium") as browser,
        ):
            await put_day(client)
            business = asyncio.create_task(_put_jobs(client))
            page = await browser.new_page()
            await page.goto(address + ENTER)
            await asyncio.sleep(A_WHILE)
            await _pictures(browser, address, client)
            business.cancel()


async def _put_jobs(client: Client) -> None:
    """Put jobs until canceled."""
    dice = random.Random(3)
    for second in range(10_000):
        rush = 20 + round(9 * dice.random()) + (30 if second % 37 < 9 else 0)
        whom = ("someone@example.com",) * 40 + ("ada.lovelace.example.com",)
        await client.queue("mail").put_many(
            jobs.send_receipt.data(to=dice.choice(whom)) for _ in range(rush)
        )
        await client.queue("pictures").put_many(
            jobs.resize.data(path=f"new/{second}-{n}.jpg") for n in range(dice.randint(50, 150))
        )
        amounts = [1250 if dice.random() < 0.01 else 49.9 for _ in range(dice.randint(0, 6))]
        await client.queue("billing").put_many(
            jobs.charge.data(invoice=9000 + second, amount=f"{each:.2f}") for each in amounts
        )
        await asyncio.sleep(1)


async def _put_failing_job(client: Client) -> str:
    """Put a job that fails because of its data, with a realistic traceback."""
    klass, queue = "shop.mail.send_receipt", client.queue("receipts")
    jid = await queue.put(klass, {"to": BROKEN, "invoice": 4711, "lines": 3}, tags=["welcome"])
    await asyncio.sleep(2)
    (job,) = await queue.pop(worker="web-1.shop-7421")
    await asyncio.sleep(4)
    lines = [
        'File "shop/mail.py", line 31, in send_receipt',
        "  await smtp.send(address(to), body)",
        'File "shop/mail.py", line 12, in address',
        '  raise ValueError(f"{to!r} is no address")',
    ]
    told = "\n".join(
        [
            "Traceback (most recent call last):",
            *(f"  {line}" for line in lines),
            f"ValueError: {BROKEN!r} is no address",
        ]
    )
    await job.fail(told, group="receipts-ValueError")
    return jid


async def _pictures(browser: Browser, address: str, client: Client) -> None:
    jid = await _put_failing_job(client)
    shots = {
        "overview": "/",
        "queue": "/queue?name=mail&tab=statistics",
        "failures": "/failures",
        "job": f"/job?jid={jid}",
    }
    for name, path in shots.items():
        for scheme in ("light", "dark") if name == "overview" else ("light",):
            page = await browser.new_page(
                color_scheme=scheme,
                viewport=SIZE,  # type: ignore[arg-type]
                device_scale_factor=1.5,
            )
            await page.goto(address + ENTER)
            await page.goto(address + path)
            await expect(page.locator("#live")).to_have_text("live", timeout=30_000)
            await page.wait_for_timeout(2500)
            await page.screenshot(
                path=DOCS / f"dashboard-{name}{'-dark' if scheme == 'dark' else ''}.png",
                full_page=name == "job",
            )
            await page.close()


if __name__ == "__main__":
    asyncio.run(main())
