"""The dashboard served by uvicorn, with a real worker and a real browser."""

from __future__ import annotations

import asyncio
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
import uvicorn
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect
from starlette.applications import Starlette

from aioqless import Client, Settings, Worker
from aioqless.contrib.dashboard import create_app
from aioqless.contrib.http import Identify, Identity, Role, Tokens
from tests.contrib.dashboard import jobs

BUSY = 120_000.0  # milliseconds for a browser to answer on a busy machine
QUEUES = ("billing", "ledger", "mail", "pictures", "stock", "reports")
TOKEN = "what was printed when the dashboard started"
OPEN = Tokens.at_startup(TOKEN)
READER: Identify = lambda _: Identity("rita", Role.READ)  # noqa: E731
ENTER = "/?" + urlencode({"token": TOKEN})
expect.set_options(timeout=60_000)


@asynccontextmanager
async def served(app: Any) -> AsyncIterator[str]:
    """Serve an app on its own port; yields its address."""
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            host="127.0.0.1",
            port=0,
            log_config=None,
            timeout_graceful_shutdown=1,
            proxy_headers=False,
        )
    )
    server.capture_signals = _NoSignals  # type: ignore[assignment]
    running = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.005)
        assert not running.done(), running.exception()
    try:
        yield f"http://localhost:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await running


class _NoSignals:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: Any) -> None: ...


@asynccontextmanager
async def worked(
    client: Client, name: str = "web-1.shop-7421", **settings: Any
) -> AsyncIterator[Worker]:
    """Run a worker with the shop's jobs."""
    given = {"queues": QUEUES, "concurrency": 8, "shutdown_timeout": 0.1} | settings
    async with Worker(client, jobs, settings=Settings(**given), name=name) as worker:  # type: ignore[arg-type]
        yield worker


@asynccontextmanager
async def browsing(chromium: str, **options: Any) -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox"], **options
        )
        try:
            yield browser
        finally:
            await browser.close()


@pytest.fixture
async def app(client: Client) -> Starlette:
    """Return a dashboard without users."""
    return create_app(client, identify=OPEN)


@pytest.fixture
async def site(app: Starlette) -> AsyncIterator[str]:
    """Return its address."""
    async with served(app) as address:
        yield address


@pytest.fixture
async def http(site: str) -> AsyncIterator[httpx.AsyncClient]:
    """Return an HTTP client that sends requests as a browser does."""
    async with entered(site, headers={"Origin": site}) as http:
        yield http


@pytest.fixture
async def stranger(site: str) -> AsyncIterator[httpx.AsyncClient]:
    """Return a browser that has not opened the start-up link."""
    async with httpx.AsyncClient(
        base_url=site, headers={"Origin": site}, trust_env=False, timeout=60
    ) as stranger:
        yield stranger


@pytest.fixture
async def earlier(redis_url: str, client: Client) -> AsyncIterator[Client]:
    """Return a client whose clock is 1,000 seconds behind."""
    begun = time.time() - 1000
    async with Client(redis_url, namespace=client.namespace, clock=lambda: begun) as earlier:
        yield earlier


@asynccontextmanager
async def entered(site: str, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    """Return a browser that has opened the start-up link."""
    async with httpx.AsyncClient(base_url=site, trust_env=False, timeout=60, **options) as http:
        assert (await http.get(ENTER)).status_code == 303
        yield http


@pytest.fixture(scope="session")
def devtools(chromium_program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start one browser for all tests, and return its address for remote control."""
    profile = tmp_path_factory.mktemp("chromium")
    options = [
        "--headless=new",
        "--no-sandbox",
        "--remote-debugging-port=0",
        f"--user-data-dir={profile}",
        "--disable-dev-shm-usage",
    ]
    process = subprocess.Popen([chromium_program, *options], stderr=subprocess.PIPE, text=True)
    assert process.stderr
    told = next((line for line in process.stderr if "DevTools listening on" in line), "")
    reading = threading.Thread(target=process.stderr.read, daemon=True)
    reading.start()
    yield told.split()[-1]
    process.terminate()
    process.wait(60)
    reading.join(10)
    process.stderr.close()


@pytest.fixture
async def browser(devtools: str) -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.connect_over_cdp(devtools, timeout=BUSY)
        yield browser
        await browser.close()


@asynccontextmanager
async def browser_context(
    browser: Browser, site: str, **options: Any
) -> AsyncIterator[BrowserContext]:
    """Return a real browser's window that has opened the start-up link."""
    async with await browser.new_context(base_url=site, **options) as context:
        assert (await context.request.get(ENTER, max_redirects=0)).status == 303
        yield context


@pytest.fixture
async def page(browser: Browser, site: str) -> AsyncIterator[Page]:
    """Return a page of a real browser; the test fails if the page logs an error."""
    async with browser_context(browser, site) as context:
        page = await context.new_page()
        complaints: list[str] = []
        page.on(
            "console",
            lambda message: (
                complaints.append(message.text) if message.type in ("error", "warning") else None
            ),
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.set_default_timeout(60_000)
        yield page
        assert complaints == []
