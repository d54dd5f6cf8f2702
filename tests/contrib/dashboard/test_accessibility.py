"""Accessibility: screen readers, keyboards, small screens, dark mode."""

from __future__ import annotations

import pytest
from axe_playwright_python.base import AXE_FILE_PATH
from playwright.async_api import Browser, Page, expect

from aioqless import Client
from tests.contrib.dashboard.conftest import browser_context
from tests.contrib.dashboard.test_investigation import report
from tests.contrib.dashboard.test_pages import EVERY_PAGE
from tests.reported_runs import run_values

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.long]
AXE = AXE_FILE_PATH.read_text("utf-8")
SERIOUS = ("serious", "critical")


@pytest.fixture
async def shop(client: Client) -> list[str]:
    """Put jobs in all states; returns the pages that show them."""
    mail = client.queue("mail")
    waiting = await mail.put("shop.mail.send", {"to": "Ada"}, tags=["welcome", "vip"], delay=50)
    held = await mail.put("shop.mail.send", {}, tags=["welcome"], depends=[waiting])
    for _ in range(3):
        await mail.put("shop.mail.send", {"to": "Bob"})
    jobs = await mail.pop(3, worker="ann")
    await jobs[0].fail(
        "Traceback (most recent call last):\n  File\nValueError: no", group="mail-ValueError"
    )
    await jobs[1].complete()
    await mail.recur("shop.reports.weekly", {}, every=3600, offset=3600, jid="weekly")
    await client.internals.store.track_track(jid=waiting, tags=[])
    others = [f"/job?jid={each}" for each in (held, jobs[0].jid, jobs[2].jid)]
    tabs = [f"/queue?name=mail&tab={tab}" for tab in ("running", "breakdown", "statistics")]
    await report(client, 300, "1.4.2", run_values(50, failures=10))
    return [
        *(each for each in EVERY_PAGE if "none" not in each),
        *others,
        *tabs,
        "/recurring-job?jid=weekly",
        *("/class?name=shop.load", "/group?error=ValueError", "/new-job?klass=shop.stock.count"),
        "/job?jid=none",
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_no_serious_problem(
    browser: Browser, site: str, shop: list[str], scheme: str
) -> None:
    async with browser_context(browser, site, color_scheme=scheme) as context:
        page = await context.new_page()
        for address in shop if scheme == "light" else shop[:2] + shop[-6:-2]:
            await page.goto(address)
            await page.evaluate(AXE)
            found = await page.evaluate(
                "axe.run(document, {resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', "
                "'wcag21aa', 'best-practice']})"
            )
            serious = [
                (each["id"], node["target"], node["failureSummary"])
                for each in found["violations"]
                if each["impact"] in SERIOUS
                for node in each["nodes"]
            ]
            assert serious == [], address


async def test_no_page_is_wider_than_a_phone_screen(
    browser: Browser, site: str, shop: list[str]
) -> None:
    async with browser_context(
        browser, site, viewport={"width": 390, "height": 844}, has_touch=True
    ) as context:
        page = await context.new_page()
        for address in shop:
            await page.goto(address)
            assert await page.evaluate("document.documentElement.scrollWidth") <= 390, address
            wide = "tables => tables.filter(each => each.scrollWidth > each.clientWidth + 1).length"
            if address in ("/", "/queues", "/recurring", "/audit-log", "/failures", "/classes"):
                assert not await page.locator(".wide").evaluate_all(wide), address


async def test_every_control_is_reachable_by_keyboard(page: Page, client: Client) -> None:
    for number in range(3):
        await client.queue(f"queue{number}").put("Greet", {})
    await page.goto("/")
    await page.keyboard.press("Tab")
    await expect(page.locator(".skip")).to_be_focused()
    await page.keyboard.press("Escape")
    await page.keyboard.type("gq")
    await expect(page.locator("h1")).to_contain_text("Queues")
    await page.wait_for_load_state()  # the script handles keys
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    await page.keyboard.press("k")
    await page.keyboard.press("Enter")
    await expect(page.locator("h1")).to_contain_text("queue0")
    await page.wait_for_load_state()
    await page.keyboard.press("?")
    await expect(page.locator("dialog")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.locator("dialog")).not_to_be_visible()
