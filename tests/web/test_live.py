"""Pages stay up to date, and Redis is asked no more for many who look than for one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import httpx
import pytest
from playwright.async_api import Browser, Page, expect
from redis.asyncio import Redis
from starlette.applications import Starlette

from aioqless import Client
from aioqless.web import Access, create_app
from tests.conftest import Until
from tests.server import OwnServer

from .conftest import served
from .test_guard import USERS, asked, log_in, token


@asynccontextmanager
async def stream(http: httpx.AsyncClient, at: str) -> AsyncIterator[AsyncIterator[str]]:
    """The contents of a page, whenever they change."""
    async with http.stream("GET", "/live", params={"at": at}, timeout=15) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")

        async def contents() -> AsyncIterator[str]:
            async for line in answer.aiter_lines():
                if line.startswith("data: "):
                    yield json.loads(line.removeprefix("data: "))

        yield contents()


async def test_a_page_is_told_anew_when_it_has_changed(http: httpx.AsyncClient, client: Client) -> None:
    jid = await client.queue("mail").put("Greet", {})
    async with stream(http, f"/job?jid={jid}") as contents:
        assert 's-waiting">waiting' in await anext(contents)
        (job,) = await client.queue("mail").pop()
        assert 's-running">running' in await anext(contents)
        await job.fail("typo", "no such word")
        assert 's-failed">failed' in await anext(contents)
        await client.jobs.cancel(jid)
        assert "There is no such job" in await anext(contents)


async def test_each_browser_gets_the_token_that_is_its_own(client: Client, site: str) -> None:
    await client.queue("mail").put("Greet", {})
    tokens, told = set(), []
    for _ in range(2):
        async with httpx.AsyncClient(base_url=site, trust_env=False) as http:
            tokens.add(await token(http, "/queue?name=mail"))
            async with stream(http, "/queue?name=mail") as contents:
                told.append(await anext(contents))
    assert len(tokens) == 2 and all(sum(each in text for each in tokens) == 1 for text in told)
    assert {each for each in tokens for text in told if each in text} == tokens


async def test_many_browsers_on_many_pages_cost_redis_five_commands_a_second_at_most(
    app: Starlette, site: str, client: Client, redis_url: str
) -> None:
    jids = [await client.queue(f"q{number}").put("Greet", {}) for number in range(20)]
    pages = [
        "/",
        "/queues",
        "/failures",
        "/workers",
        "/completed",
        *(f"/job?jid={jid}" for jid in jids),
        *(f"/queue?name=q{n}" for n in range(15)),
    ]
    times: list[float] = []
    async with AsyncExitStack() as stack, Redis.from_url(redis_url) as watching:
        for _ in range(3):
            http = await stack.enter_async_context(httpx.AsyncClient(base_url=site, trust_env=False))
            for page in pages[: 40 if _ else 10]:
                await stack.enter_async_context(stream(http, page))
        assert app.state.dashboard.live.browsers == 90
        async with watching.monitor() as monitor:
            try:
                async with asyncio.timeout(4):
                    async for command in monitor.listen():
                        if command["client_type"] != "lua":
                            times.append(command["time"])
            except TimeoutError:
                pass
    assert len(times) > 10
    assert max(sum(first <= each < first + 1 for each in times) for first in times) <= 5


async def test_nobody_looks_and_nothing_is_asked(app: Starlette, http: httpx.AsyncClient, client: Client, until: Until) -> None:
    async with stream(http, "/") as contents:
        await anext(contents)
    live = app.state.dashboard.live
    await until(lambda: live.browsers == 0 and live._making is None)
    before = (await client.redis.info("stats"))["total_commands_processed"]
    await asyncio.sleep(0.3)
    assert (await client.redis.info("stats"))["total_commands_processed"] <= before + 1


async def test_a_stream_ends_when_its_user_logs_out(client: Client) -> None:
    async with asked(create_app(client, access=Access(users=USERS))) as http:
        await log_in(http, "ada")
        async with stream(http, "/queue?name=mail") as contents:
            await anext(contents)
            await http.post("/logout", data={"token": await token(http)})
            await client.queue("mail").put("Greet", {})
            assert [each async for each in contents] == []


async def test_a_server_that_stops_ends_its_streams(client: Client) -> None:
    async with AsyncExitStack() as stack, httpx.AsyncClient(trust_env=False) as http:
        async with served(create_app(client)) as address:
            http.base_url = httpx.URL(address)
            contents = await stack.enter_async_context(stream(http, "/"))
            await anext(contents)
        assert [each async for each in contents] == []


@pytest.mark.xdist_group("browser")
async def test_what_is_typed_open_or_focused_stays_while_the_page_changes(page: Page, client: Client) -> None:
    jid = await client.queue("mail").put("Greet", {"to": "Ada"}, delay=100)
    await page.goto(f"/job?jid={jid}")
    await expect(page.locator("#live")).to_have_text("live")
    await page.get_by_text("Move, priority, tags…").click()
    await page.get_by_label("Data of the job, as JSON").fill('{"to": "Bob"}')
    await page.get_by_label("Tags").fill("half a wo")
    job = await client.jobs.get(jid)
    assert job
    await job.tag("seen")
    await expect(page.locator(".facts")).to_contain_text("seen")
    assert await page.get_by_label("Data of the job, as JSON").input_value() == '{"to": "Bob"}'
    assert await page.get_by_label("Tags").input_value() == "half a wo"
    assert await page.evaluate("document.activeElement.name") == "tags"


@pytest.mark.xdist_group("browser")
async def test_while_redis_is_away_the_page_says_so_and_comes_back_by_itself(browser: Browser, own_server: OwnServer) -> None:
    async with (
        Client(own_server.url) as client,
        served(create_app(client)) as address,
        await browser.new_context(base_url=address) as context,
    ):
        page = await context.new_page()
        await client.queue("mail").put("Greet", {})
        await page.goto("/queues")
        await expect(page.locator("#live")).to_have_text("live")
        own_server.kill()
        await expect(page.locator("h1")).to_have_text("Redis is away", timeout=20_000)
        await expect(page.locator("main")).to_contain_text("comes back by itself")
        own_server.start()
        await expect(page.locator("h1")).to_contain_text("Queues", timeout=20_000)
        await expect(page.locator("#live")).to_have_text("live")


@pytest.mark.xdist_group("browser")
async def test_without_javascript_links_and_buttons_work(browser, site: str, client: Client) -> None:  # type: ignore[no-untyped-def]
    await client.queue("mail").put("Greet", {})
    async with await browser.new_context(java_script_enabled=False, base_url=site) as context:
        page = await context.new_page()
        await page.goto("/")
        await page.get_by_role("link", name="mail").click()
        await page.get_by_role("button", name="Pause").click()
        await expect(page.locator("#notes")).to_contain_text("Queue mail is paused")
    assert (await client.queue("mail").counts())["paused"]
