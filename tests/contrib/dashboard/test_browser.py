"""The dashboard in a browser beside a worker: each page and button."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, Page, Route, expect

from aioqless import Client, NewJob
from tests.conftest import Until, existing_job
from tests.contrib.dashboard import jobs
from tests.contrib.dashboard.conftest import browser_context, worked
from tests.contrib.dashboard.sample_jobs import BROKEN, put_day

pytestmark = pytest.mark.xdist_group("browser")


async def says(page: Page, text: str) -> None:
    """Check the flash message."""
    await expect(page.locator("#notes")).to_contain_text(text)


@pytest.fixture
async def shop(client: Client, until: Until) -> AsyncIterator[Client]:
    """Run the shop until only failed, running, scheduled and blocked jobs are left."""
    async with worked(client):
        await put_day(client)

        async def at_rest() -> bool:
            counts = {each.name: each for each in await client.queues()}
            return (
                all(each.waiting == 0 for each in counts.values())
                and sum(each.running for each in counts.values()) == counts["stock"].running == 4
                and (await client.jobs.failed_counts()).keys()
                == {"mail-ValueError", "billing-CardRefused"}
            )

        await until(at_rest, 60)
        yield client


async def test_failed_job_is_found_edited_and_watched_to_completion(
    page: Page, shop: Client
) -> None:
    await page.goto("/")
    await page.get_by_role("link", name="Failures", exact=True).first.click()
    await page.get_by_role("link", name="ValueError", exact=True).click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("ValueError 3 failed")
    await expect(page.locator(".cause")).to_contain_text(f"'{BROKEN}' is no address")
    await page.locator("a.row").first.click()
    await expect(page.locator("h1")).to_contain_text("failed")
    await expect(page.locator("pre")).to_contain_text("raise ValueError")
    data = page.get_by_label("Data of the job, as JSON")
    assert BROKEN in await data.input_value()
    await data.fill('{"to": "ada@example.com"}')
    await page.get_by_role("button", name="Save and retry").click()
    await expect(page.locator("h1")).to_contain_text("complete")  # without reloading the page
    await says(page, "with the edited data")
    await expect(page.locator(".timeline li").first).to_contain_text("Completed")
    assert "ada@example.com" in await data.input_value()


@pytest.mark.long
async def test_invalid_json_is_refused_and_the_input_is_kept(page: Page, shop: Client) -> None:
    (jid, *_) = await shop.jobs.failed_jids("mail-ValueError")
    await page.goto(f"/job?jid={jid}")
    await page.get_by_label("Data of the job, as JSON").fill('{"to": ')
    await page.get_by_role("button", name="Save and retry").click()
    await says(page, "the data is not JSON, nothing was changed")
    assert (await existing_job(shop, jid)).state == "failed"
    assert await page.get_by_label("Data of the job, as JSON").input_value() == '{"to": ', (
        "the input is kept"
    )


@pytest.mark.long
async def test_queue_is_cleared_with_progress_except_running_jobs(
    page: Page, client: Client
) -> None:
    letters = client.queue("letters")
    await letters.put_many(
        NewJob("Letter", {}, jid=f"l{number}", delay=number % 2 * 600) for number in range(6)
    )
    (running,) = await letters.pop()
    needed = (await letters.jids("waiting"))[0]
    await client.queue("post").put("Post", {}, depends=[needed])
    await page.goto("/queue?name=letters")
    await page.get_by_text("Clear…").click()
    await expect(page.locator("main")).to_contain_text("Deletes 5 jobs: those")
    await page.get_by_role("button", name="Delete jobs").click()
    await says(page, "Deleting 5 jobs of letters")
    await expect(page.locator(".bulk")).to_contain_text(
        "queue letters: 4 of 5 deleted, 1 kept for their dependents"
    )
    assert {
        job.jid for job in await client.jobs.multiget(*(f"l{number}" for number in range(6)))
    } == {running.jid, needed}
    await page.goto("/audit-log")
    await expect(page.locator("tbody")).to_contain_text("4 of 5 jobs, 1 left, started")


@pytest.mark.long
async def test_every_action_on_a_job_works(page: Page, shop: Client, until: Until) -> None:
    jid = (await shop.queue("mail").jids("scheduled"))[0]
    await page.goto(f"/job?jid={jid}")
    await page.get_by_role("button", name="Track").click()
    await says(page, "is tracked")
    await page.get_by_text("Move, priority, tags…").click()
    await page.get_by_label("Priority").fill("-7")
    await page.get_by_role("button", name="Set").click()
    await says(page, "has priority -7")
    await page.get_by_text("Move, priority, tags…").click()
    await page.get_by_label("Tags").fill("urgent, <b>odd</b>")
    await page.get_by_role("button", name="Add").click()
    await says(page, "urgent, <b>odd</b>.")
    await page.get_by_title("Remove the tag urgent").click()
    await says(page, "Tag urgent removed")
    await page.get_by_text("Move, priority, tags…").click()
    await page.get_by_label("Move to queue").fill("nowhere served")
    await page.get_by_label("Delay (s)").fill("60")
    await page.get_by_role("button", name="Move", exact=True).click()
    await says(page, "moved to nowhere served")
    job = await existing_job(shop, jid)
    assert (job.queue, job.state, job.priority, job.tags, job.tracked) == (
        "nowhere served",
        "scheduled",
        -7,
        ["<b>odd</b>"],
        True,
    )
    await page.get_by_role("button", name="Untrack").click()
    await says(page, "is no longer tracked")
    await page.get_by_role("button", name="Run now").click()
    await expect(page.locator("h1")).to_contain_text("waiting")
    await page.get_by_label("Data of the job, as JSON").fill('{"to": "other@example.com"}')
    await page.get_by_role("button", name="Enqueue a copy").click()
    await says(page, "enqueued")
    await expect(page.locator(".ident")).not_to_contain_text(jid)
    await page.goto(f"/job?jid={jid}")
    await page.get_by_text("Delete…").click()
    await page.get_by_role("button", name="Delete job").click()
    await says(page, "deleted")
    assert await shop.jobs.get(jid) is None and "/queue" in page.url


@pytest.mark.long
async def test_dependency_graph_has_links(page: Page, client: Client) -> None:
    first = await client.queue("mail").put("Fetch", {}, delay=100)
    middle = await client.queue("mail").put("Resize", {}, depends=[first])
    last = await client.queue("mail").put("Report", {}, depends=[middle])
    await page.goto(f"/job?jid={middle}")
    assert (
        await page.locator(".graph a").count() == 3
        and await page.locator(".graph .arrow").count() == 2
    )
    await page.locator(f".graph a[aria-label*='{last}']").click()
    await expect(page.locator("h1")).to_contain_text("Report")
    await page.get_by_role("button", name="Remove all dependencies").click()
    await expect(page.locator("h1")).to_contain_text("waiting")


@pytest.mark.long
async def test_graph_shows_the_job_that_a_failure_puts_before_and_after_it(
    page: Page, client: Client
) -> None:
    jid = await client.queue("mail").put(NewJob("Reserve").on_failure(NewJob("Refund")))
    await page.goto(f"/job?jid={jid}")
    await expect(page.locator(".graph")).to_contain_text("if this fails")
    assert await page.locator(".graph .arrow.failure").count() == 1
    (job,) = await client.queue("mail").pop()
    await job.fail("none is left", group="sold-out")
    await page.goto(f"/job?jid={jid}")
    await page.locator(f".graph a[aria-label*='{jid}-failure-1']").click()
    await expect(page.locator("h1")).to_contain_text("Refund")
    await expect(page.locator(f".graph a[aria-label$='job {jid}']")).to_contain_text("failed")
    assert await page.locator(".graph .arrow.failure").count() == 1


@pytest.mark.long
async def test_action_with_a_lost_reply_is_reported_as_unknown(
    browser: Browser, site: str, client: Client
) -> None:
    async with browser_context(browser, site) as context:
        page = await context.new_page()
        await client.queue("mail").put("Greet", {})

        async def lose(route: Route) -> None:
            await route.fetch(max_redirects=0)  # it is executed, but the browser gets no reply
            await route.abort()

        async def send_old_token(route: Route) -> None:
            await route.continue_(
                post_data=re.sub("token=[^&]*", "token=old", route.request.post_data or "")
            )

        await page.route("**/do/pause", lose)
        await page.goto("/queue?name=mail")
        await page.get_by_role("button", name="Pause").click()
        await says(page, "Result unknown, the action may have been performed")
        await page.reload()
        await says(page, "Queue mail paused")
        await page.get_by_role("button", name="Resume").click()
        await says(page, "Queue mail resumed")
        await page.unroute("**/do/pause")
        await page.route("**/do/pause", send_old_token)
        await page.get_by_role("button", name="Pause").click()
        await says(page, "Not done: This page has expired")


@pytest.mark.long
async def test_queue_is_paused_resumed_and_forgotten(page: Page, shop: Client) -> None:
    await page.goto("/queue?name=mail")
    await page.get_by_role("button", name="Pause").click()
    await says(page, "Queue mail paused")
    assert (await shop.queue("mail").counts()).paused
    await page.get_by_role("button", name="Resume").click()
    await says(page, "Queue mail resumed")
    await page.get_by_text("Remove…").click()
    await page.get_by_role("button", name="Remove queue").click()
    await says(page, "only an empty queue can be removed")
    for tab in ("waiting", "running", "scheduled", "stalled", "blocked", "recurring", "statistics"):
        await page.locator(".tabs").get_by_role("link", name=re.compile(tab)).click()
        await expect(page.locator(".tabs [aria-current]")).to_contain_text(tab)
    await expect(page.locator(".chart")).to_have_count(3)
    await page.get_by_role("link", name="← Previous day").click()
    await expect(page.locator(".empty").first).to_contain_text("No jobs started")


@pytest.mark.long
async def test_worker_is_subscribed_paused_and_stopped(
    page: Page, client: Client, until: Until
) -> None:
    async with worked(client, "ann") as worker:
        await client.queue("stock").put(jobs.count.data(shelf="A"))
        await until(lambda: worker.running)
        await page.goto("/workers")
        await expect(page.locator("tbody")).to_contain_text("shop.stock.count")
        await page.get_by_role("link", name="ann").click()
        await page.get_by_role("button", name="Pause").click()
        await says(page, "Worker ann paused")
        assert worker.paused
        await page.get_by_role("button", name="Resume").click()
        await says(page, "ann resumed")
        await page.get_by_label("Serve queue").fill("extra")
        await page.get_by_role("button", name="Add").click()
        await says(page, "ann serves extra")
        await expect(page.locator("main dl")).to_contain_text("extra")
        await page.get_by_label("Serve queue").fill("extra")
        await page.get_by_role("button", name="Remove").click()
        await says(page, "no longer serves extra")
        await page.get_by_text("Stop…").click()
        await page.get_by_role("button", name="Stop worker").click()
        await says(page, "is shutting down")
        await until(lambda: not worker.ready)


@pytest.mark.long
async def test_recurring_job_is_run_changed_paused_and_canceled(page: Page, client: Client) -> None:
    await client.queue("reports").recur(
        "shop.reports.weekly", {"week": 1}, every=3600, offset=3600, jid="weekly"
    )
    await page.goto("/recurring")
    await page.get_by_role("button", name="Pause").click()
    await says(page, "paused")
    await page.get_by_role("button", name="Resume").click()
    await says(page, "resumed")
    await page.get_by_role("link", name="shop.reports.weekly").click()
    await page.get_by_label("Data, as JSON").fill('{"week": 2}')
    await page.get_by_label("Every, in seconds").fill("7200")
    await page.get_by_role("button", name="Save").click()
    await says(page, "changed")
    template = await client.recurring.get("weekly")
    assert template and (template.interval, template.data) == (7200, {"week": 2})
    await page.get_by_role("button", name="Run now").click()
    await says(page, "enqueued in reports")
    await expect(page.locator("h1")).to_contain_text("waiting")
    await page.goto("/recurring-job?jid=weekly")
    await page.get_by_text("Delete…").click()
    await page.get_by_role("button", name="Delete the schedule").click()
    await says(page, "deleted")
    assert await client.recurring.get("weekly") is None


@pytest.mark.long
async def test_configuration_is_set_and_unset(page: Page, client: Client) -> None:
    await page.goto("/config")
    await page.get_by_label("Value of heartbeat").fill("90")
    await page.locator("tr", has_text="heartbeat").get_by_role("button", name="Set").first.click()
    await says(page, "heartbeat set to 90")
    assert await client.config.get("heartbeat") == "90"
    await page.locator("tr", has_text="heartbeat").get_by_text("Reset…").first.click()
    await page.get_by_role("button", name="Reset heartbeat").click()
    await says(page, "heartbeat reset to its default")
    await page.get_by_label("Value of heartbeat").fill("soon")
    await page.locator("tr", has_text="heartbeat").get_by_role("button", name="Set").first.click()
    await says(page, "Not done: heartbeat 'soon' is not a number")


@pytest.mark.long
async def test_jobs_are_found_by_jid_tag_klass_queue_and_group(page: Page, shop: Client) -> None:
    (jid, *_) = await shop.jobs.failed_jids("mail-ValueError")
    await page.goto("/")
    for wanted, found in (
        (jid, jid),
        ("welcome", "3 jobs"),
        ("RESIZE", "shop.pictures.resize"),
        ("bill", "billing-CardRefused"),
    ):
        # the script handles keys, and runs after the page is parsed
        await page.wait_for_load_state()
        await page.keyboard.press("/")
        await expect(page.locator("#q")).to_be_focused()
        await page.keyboard.type(wanted)
        await page.keyboard.press("Enter")
        await expect(page.locator("main")).to_contain_text(found)
    await page.goto("/jobs?filter=nothing-like-this")
    await expect(page.locator(".empty")).to_contain_text("No results")
