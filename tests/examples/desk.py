"""The review desk as its own process, and people who use it in a real browser."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from redis import Redis

from aioqless import Client
from examples.review_desk import app, jobs

ROOT = Path(__file__).parents[2]
PATIENCE = 60_000  # ms, for machines that are busy with other tests
expect.set_options(timeout=PATIENCE)


@contextmanager
def desk(redis_url: str, folder: Path, limit: float = 90) -> Iterator[str]:
    """Start the example on its own port; yields its address."""
    told = folder / "desk.log"
    environment = os.environ | {"AIOQLESS_URL": redis_url, "PYTHONUNBUFFERED": "1"}
    with told.open("wb") as log:
        command = [
            sys.executable,
            "-m",
            "examples.review_desk",
            "--port",
            "0",
            "--limit",
            str(limit),
        ]
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 60
        while not (found := re.search(r"Open (http://\S+)", told.read_text())):
            assert process.poll() is None and time.monotonic() < deadline, told.read_text()
            time.sleep(0.01)
        yield found[1]
    finally:
        process.terminate()
        process.wait(60)


def put_all(redis_url: str) -> None:
    """Reset all items to the state after the machine's step.

    Runs in its own thread, since Playwright uses this thread's event loop.
    """

    async def put() -> None:
        async with Client(redis_url) as client:
            await app.put_all(client)

    thread = threading.Thread(target=lambda: asyncio.run(put()))
    thread.start()
    thread.join()
    deadline = time.monotonic() + 60
    with Redis.from_url(redis_url) as connection:
        while connection.exists(f"ql:q:{jobs.READ}-work", f"ql:q:{jobs.READ}-locks"):
            assert time.monotonic() < deadline, "the machine reads no more"
            time.sleep(0.02)


@contextmanager
def chromium(program: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


class Person:
    """A person at the desk, in one window."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        self.context = context
        self.address = address
        self.page: Page = context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.complaints: list[str] = []
        self.page.on(
            "console",
            lambda message: (
                self.complaints.append(message.text)
                if message.type in ("error", "warning")
                else None
            ),
        )
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(address)

    def sign_in(self, name: str) -> Person:
        self.page.get_by_label("Your name").fill(name)
        self.page.get_by_role("button", name="Sit down").click()
        expect(self.page.get_by_role("heading", name="Ready when you are")).to_be_visible()
        return self

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def take(self) -> str:
        """Take the next item; returns its name."""
        self.press("n")
        return self.item()

    def item(self) -> str:
        """Return the item that is shown."""
        self.sees("#work")
        return self.page.inner_text("#item-module") + self.page.inner_text("#item-name")

    def judge(self, key: str) -> None:
        """Submit a judgment and wait for the next item."""
        before = self.item()
        self.press(key)
        self.page.wait_for_function(
            "name => document.querySelector('#item-name').textContent !== name",
            arg=before.rpartition(".")[2],
        )

    def let_time_run_out(self) -> None:
        """Let the clock of the page be ahead by more than a reservation lasts."""
        self.page.evaluate("() => { const now = Date.now; Date.now = () => now() + 100_000; }")

    def sees(self, selector: str, text: Any = None) -> None:
        found = self.page.locator(selector)
        expect(found).to_be_visible()
        if text is not None:
            expect(found).to_contain_text(text)

    def recent_items(self) -> list[str]:
        """Return the person's recent items, the latest first."""
        return [text.replace("\n", " ") for text in self.page.locator("#mine li").all_inner_texts()]
