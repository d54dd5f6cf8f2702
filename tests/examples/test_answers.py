"""The example of streamed answers in a browser: reloaded, and while its worker is killed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from playwright.async_api import expect

from aioqless import Client
from examples.answers import app, model
from tests.conftest import Until
from tests.contrib.dashboard.conftest import browsing, served

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
QUESTION = "Why does backpressure matter?"
WORDS = model.compose(QUESTION)


@pytest.fixture
async def client(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Client]:
    monkeypatch.setenv("AIOQLESS_URL", redis_url)
    monkeypatch.setenv("AIOQLESS_NAMESPACE", "answers")
    async with Client() as client:
        yield client


async def test_each_page_shows_the_whole_answer_though_a_worker_is_killed(
    client: Client, chromium_program: str, monkeypatch: pytest.MonkeyPatch, until: Until
) -> None:
    killed = False

    def compose_half(_: str) -> Iterator[str]:
        """Yield the words; the first run waits in the middle until its worker is killed."""
        for number, word in enumerate(WORDS):
            holds = number == len(WORDS) // 2 and not killed
            monkeypatch.setattr(model, "PAUSE", 3600 if holds else 0.01)
            yield word

    monkeypatch.setattr(model, "compose", compose_half)
    async with (
        served(model.app) as model_url,
        served(app.app) as site,
        browsing(chromium_program) as browser,
    ):
        command = [sys.executable, "-m", "aioqless", "worker", "examples.answers.jobs"]
        environment = {**os.environ, "MODEL_URL": model_url}

        def start() -> subprocess.Popen[bytes]:
            quiet = subprocess.DEVNULL
            return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=quiet, stderr=quiet)

        page, reloaded = await browser.new_page(), await browser.new_page()
        await page.goto(site)
        await page.get_by_label("Question").fill(QUESTION)
        await page.get_by_role("button", name="Ask").click()
        await page.wait_for_url(re.compile("/answers/"))
        jid = page.url.rpartition("/")[2]
        await reloaded.goto(page.url)

        async def shown() -> int:
            return len(await page.locator("#answer").text_content() or "")

        worker = start()
        try:

            async def half() -> bool:
                await reloaded.reload()
                return await shown() > 200

            await until(half, 60)
            killed = True
            worker.kill()
            worker.wait()
            await client.jobs.unlock(jid)  # rather than wait for its lock
            worker = start()
            for each in (page, reloaded):
                await expect(each.locator("#state")).to_have_text("complete", timeout=60_000)
                assert await each.locator("#answer").text_content() == "".join(WORDS)
        finally:
            worker.kill()
            worker.wait()
        await page.reload()
        await expect(page.locator("#state")).to_have_text("complete", timeout=60_000)
        assert await page.locator("#answer").text_content() == "".join(WORDS)
        if folder := os.environ.get("PICTURES"):
            await page.screenshot(path=Path(folder) / "answers.png")
