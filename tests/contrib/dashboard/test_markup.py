"""Jobs with markup in every field, in the browser."""

from __future__ import annotations

import json

import pytest
from playwright.async_api import Page, expect

from aioqless import Client
from aioqless.contrib.job_filter import Condition, Text
from tests.contrib.dashboard.test_pages import EVERY_PAGE

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.long]

MARKUP = (
    """"><img src=x onerror="window.caught=1"><script>window.caught=1</script>"""
    """{{7*7}}${7*7}'`</textarea></pre>"""
)
NAME = MARKUP[:200]
SHOWN = """document.title + document.body.innerText
    + document.body.innerHTML.replace(/<textarea.*?textarea>|value=".*?"/gs, '')"""
HIDING = "\u202e\u200b\u2066\ufeff"


async def test_markup_in_every_field_is_shown_as_text(page: Page, client: Client) -> None:
    queue = client.queue(NAME)
    data = {MARKUP: [MARKUP], "invoice": MARKUP}
    jid = await queue.put(NAME, data, jid=NAME, tags=[NAME, "two"], context={NAME: MARKUP}, delay=0)
    await queue.put(NAME, {}, tags=[NAME], depends=[jid])
    await queue.recur(NAME, data, every=3600, offset=3600, jid="r" + NAME, tags=[NAME])
    await client.internals.store.track_track(jid=jid, tags=[])
    await client.jobs.tags()
    await client.config.set(NAME, NAME, force=True)
    (job,) = await queue.pop(worker=NAME)
    await job.log(MARKUP, more=MARKUP)
    job.progress(0.5, MARKUP)
    looked = [f"/job?jid={_quoted(jid)}", f"/recurring-job?jid={_quoted('r' + NAME)}"]
    looked += [f"/{each}?name={_quoted(NAME)}" for each in ("queue", "group", "worker")] + [
        f"/jobs?filter={_quoted(str(Text(NAME)))}",
        f"/jobs?filter={_quoted(str(Condition('tag', (Text(NAME),))))}",
    ]
    await _look(page, [*(each for each in EVERY_PAGE if "none" not in each), *looked])
    await job.fail(f"Traceback\n  {MARKUP}\n{MARKUP}", group=NAME)
    await _look(page, ["/", "/failures", *looked])
    await page.goto(looked[0])
    await expect(page.locator("h1")).to_contain_text(NAME)
    shown = json.loads(await page.get_by_label("Data of the job, as JSON").input_value())
    assert shown == data
    await page.get_by_role("button", name="Retry", exact=True).click()
    await expect(page.locator("h1")).to_contain_text("waiting")
    assert await page.evaluate("window.caught") is None


async def test_invisible_and_bidirectional_characters_are_escaped_and_submitted_unchanged(
    page: Page, client: Client
) -> None:
    name = f"invoice{HIDING}"
    queue, data = client.queue(name), {"to": HIDING}
    jid = await queue.put(name, data, jid=name, tags=[name])
    await queue.put(name, {}, depends=[jid], tags=[name])
    (job,) = await queue.pop(worker=name)
    await job.log(HIDING)
    await job.fail(f"Traceback\n\tline {HIDING}", group=name)
    looked = [f"/{each}?name={_quoted(name)}" for each in ("queue", "group")]
    for address in [
        "/",
        "/queues",
        "/failures",
        "/tags",
        f"/job?jid={_quoted(jid)}",
        f"/jobs?filter={_quoted(str(Condition('tag', (Text(name),))))}",
        *looked,
    ]:
        await page.goto(address, wait_until="domcontentloaded")
        shown = await page.evaluate(SHOWN)
        assert "\\u202e" in shown and not set(HIDING) & set(shown), address
    await page.goto(f"/job?jid={_quoted(jid)}")
    assert json.loads(await page.get_by_label("Data of the job, as JSON").input_value()) == data
    assert "Traceback\n\tline" in await page.locator("#traceback pre").inner_text()
    await page.get_by_role("button", name="Retry", exact=True).click()
    await expect(page.locator("h1")).to_contain_text("waiting")
    found = await client.jobs.get(jid)
    assert found and (found.state, found.queue, found.data) == ("waiting", name, data)


async def _look(page: Page, addresses: list[str]) -> None:
    for address in addresses:
        answer = await page.goto(address, wait_until="domcontentloaded")
        assert answer and answer.status in (200, 404), address
        assert await page.evaluate(
            "[window.caught, document.querySelectorAll('img, main script').length]"
        ) == [None, 0], address


def _quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")
