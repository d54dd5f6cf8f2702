"""Make the screenshots of long jobs: `python -m tests.contrib.dashboard.long_job_pictures`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import aioqless
from aioqless.contrib.dashboard import create_app
from aioqless.testing import server
from tests.contrib.dashboard.conftest import ENTER, OPEN, browsing, served
from tests.programs import find

DOCS = Path(__file__).parents[3] / "docs"
VIEW: Any = {"viewport": {"width": 1240, "height": 860}, "device_scale_factor": 1.5}
LETTER = (
    "Dear Ada, we are sorry that the blue teapot arrived in two pieces. We send you another one "
    "today, and you need not return the first. "
)


@aioqless.job(klass="shop.letters.answer", queue="letters", output_ttl=3600)
async def answer(job: aioqless.Job, complaint: int) -> None:
    async def write() -> str:
        for word in LETTER.split(" "):
            job.emit(f"{word} ")
            await asyncio.sleep(0.1)
        return LETTER.strip()

    await job.step("find the order", find_order, complaint)
    await job.step("write", write)
    await job.wait_for("approval", timeout=2 * 86400)


async def find_order(complaint: int) -> dict[str, str | int]:
    return {"order": 1042, "customer": "Ada", "goods": "a blue teapot"}


async def main() -> None:
    with server() as url:
        async with (
            aioqless.Client(url) as client,
            served(create_app(client, identify=OPEN)) as address,
            browsing(find("chromium") or "chromium") as browser,
        ):
            page = await browser.new_page(color_scheme="light", **VIEW)
            await page.goto(address + ENTER)
            jid = await client.put(answer.data(complaint=7))
            settings = aioqless.Settings(queues=["letters"], park_after=0)
            async with aioqless.Worker(client, answer, settings=settings, name="web-1.shop-7421"):
                await page.goto(f"{address}/job?jid={jid}")
                await page.get_by_text("blue teapot arrived").wait_for()
                await page.screenshot(path=DOCS / "dashboard-output.png")
                await page.get_by_text("it waits for signal").wait_for()
                await page.get_by_role("button", name="Send signal").wait_for()
                await page.screenshot(path=DOCS / "dashboard-signal.png", full_page=True)


if __name__ == "__main__":
    asyncio.run(main())
