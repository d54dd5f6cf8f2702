"""What an operator reads on the pages: reasons, times, numbers, names."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from playwright.async_api import Browser, Page, expect
from starlette.applications import Starlette

from aioqless import Client, NewJob
from aioqless.contrib.dashboard import audit_log
from aioqless.contrib.dashboard.actions import ACTIONS, action_name
from aioqless.contrib.http import Identity, Role
from tests.conftest import Until
from tests.contrib.dashboard.conftest import browser_context
from tests.contrib.dashboard.steps import do, token

browser_test = pytest.mark.xdist_group("browser")


async def test_overdue_schedule_is_called_overdue_and_lists_coming_runs(
    http: httpx.AsyncClient, earlier: Client
) -> None:
    await earlier.queue("mail").recur("Greet", {}, every=300, jid="each")
    for path in ("/recurring", "/recurring-job?jid=each"):
        page = (await http.get(path)).text
        due, *coming = re.findall(r'<time[^>]* datetime="([^"]+)"', page.split("overdue, due")[1])
        now = datetime.now(UTC)
        assert datetime.fromisoformat(due) < now - timedelta(seconds=900)
        assert now < datetime.fromisoformat(coming[0]) < now + timedelta(seconds=300)
    assert "overdue" in (await http.get("/queue?name=mail&tab=recurring")).text


async def test_runs_of_a_schedule_are_shown_in_its_time_zone_too(
    http: httpx.AsyncClient, client: Client
) -> None:
    await client.queue("mail").recur(
        "Greet", {}, cron="15 9 * * *", timezone="Asia/Tokyo", jid="tokyo"
    )
    await client.queue("mail").recur("Greet", {}, cron="15 9 * * *", jid="utc")
    for path in ("/recurring", "/recurring-job?jid=tokyo"):
        page = (await http.get(path)).text
        assert " 00:15:00 UTC<" in page and " 09:15:00 Asia/Tokyo<" in page
    assert "09:15:00 UTC</span>" not in (await http.get("/recurring-job?jid=utc")).text


@browser_test
async def test_alarms_are_one_line_each_and_dismissed_together(
    page: Page, client: Client, earlier: Client
) -> None:
    for number in range(4):
        await earlier.queue(f"queue-of-a-department-with-a-long-name-{number}").put("Greet", {})
    await client.queue("held").put("Greet", {})
    await client.queue("held").pause()
    await client.internals.store.beat(worker="ann", process="{}", queues=["held"])
    await client.queue("held").pop(worker="ann")
    await page.set_viewport_size({"width": 390, "height": 800})
    await page.goto("/")
    alarms = page.locator(".alarms .alarm")
    for number in range(2):
        box = await alarms.nth(number).bounding_box()
        assert box and box["height"] < 40
    await page.get_by_role("button", name="Dismiss all").click()
    await expect(alarms.first).to_be_hidden()
    await expect(page.get_by_role("button", name="Dismiss all")).to_be_hidden()
    await page.get_by_role("button", name="Show dismissed alarms").click()
    await expect(alarms.first).to_be_visible()


async def test_failures_stand_above_queues_while_they_rise(
    app: Starlette, http: httpx.AsyncClient, client: Client
) -> None:
    await client.queue("mail").put("Greet", {})
    page = (await http.get("/")).text
    assert page.index('id="h-queues"') < page.index('id="h-failures"')
    assert ">Waiting</th>" in page and ">Stalled</th>" not in page and ">Blocked</th>" not in page
    (job,) = await client.queue("mail").pop()
    await client.queue("mail").put("Greet", {}, depends=[job.jid])
    await client.queue("mail").put("Greet", {}, jid="b")
    (other,) = await client.queue("mail").pop()
    await other.fail("no", group="mail-OSError")
    await app.state.dashboard.overviews.read(max_age=0)
    page = (await http.get("/")).text
    assert page.index('id="h-queues"') > page.index('id="h-failures"')
    assert ">Blocked</th>" in page


async def test_offline_workers_are_folded_and_jobs_that_are_cut_off_counted(
    app: Starlette, http: httpx.AsyncClient, client: Client, earlier: Client
) -> None:
    await earlier.internals.store.beat(worker="ben", process="{}", queues=["mail"])
    await earlier.queue("mail").pop(worker="ben")
    store = client.internals.store
    await store.beat(worker="ann", process="{}", queues=["mail"])
    for _ in range(5):
        await client.queue("mail").put("Greet", {})
        await client.queue("mail").pop(worker="ann")
    await app.state.dashboard.overviews.read(max_age=0)
    page = (await http.get("/workers")).text
    online, offline = page.split("<summary>")
    assert ">ann</a>" in online and ">and 3 more</a>" in online and ">ben</a>" not in online
    assert offline.startswith("1 offline") and ">ben</a>" in offline


async def test_completed_job_is_listed_with_its_queue_worker_and_run_time(
    http: httpx.AsyncClient, earlier: Client, client: Client
) -> None:
    await client.queue("mail").put("Greet", {})
    (job,) = await earlier.queue("mail").pop(worker="ann")
    await client.internals.store.complete(jid=job.jid, worker="ann", queue="mail", fence=job.fence)
    page = (await http.get("/jobs?filter=state:complete")).text
    assert '<a href="/queue?name=mail">mail</a>' in page
    assert re.search(r"ran 16 min [45]\d s", page) and '<a href="/worker?name=ann">ann</a>' in page


async def test_running_jobs_are_listed_with_their_start(
    http: httpx.AsyncClient, client: Client
) -> None:
    await client.queue("mail").put("Greet", {})
    await client.queue("mail").pop(worker="ann")
    page = (await http.get("/queue?name=mail&tab=running")).text
    assert ">Started</th>" in page and "lock expires <time" in page


async def test_blocked_jobs_are_called_blocked(http: httpx.AsyncClient, client: Client) -> None:
    first = await client.queue("mail").put("Greet", {})
    jid = await client.queue("mail").put("Greet", {}, depends=[first])
    page = (await http.get("/queue?name=mail&tab=depends")).text
    assert ">blocked <span>1</span>" in page and ">depends" not in page
    assert (
        '<span class="badge s-depends">blocked</span>' in (await http.get(f"/job?jid={jid}")).text
    )


async def test_audit_log_has_the_names_of_buttons_and_labels(
    http: httpx.AsyncClient, client: Client
) -> None:
    jid = await client.queue("mail").put("Greet", {})
    await do(http, "put-again", jid=jid, how="same", data='{"a": 1}')
    page = (await http.get("/audit-log")).text
    assert "<td>Edit data</td>" in page and "Saved as: same" in page and "Job: <a" in page
    assert all(action_name(name) != name for name in ACTIONS)


async def test_bulk_action_is_one_entry_of_the_audit_log(
    http: httpx.AsyncClient, client: Client, until: Until
) -> None:
    ada = Identity("ada", Role.ADMIN)
    await audit_log.record(client, ada, "clear", {"queue": "old"}, f"{audit_log.BEGUN}9 jobs")
    await client.queue("mail").put_many([NewJob("Greet", tags=["news"]) for _ in range(3)])
    await do(http, "select-tag", filter="tag:news", found="3", tags="vip")
    await until(lambda: client.jobs.tagged_jids("vip"))
    await do(http, "pause", queue="mail")
    await do(http, "clear", queue="empty")

    async def ended() -> list[str] | None:
        entries, _ = await audit_log.read_actions(client, before=None, count=9)
        return [each["act"] for each in entries if any("started" in each for each in entries)]

    assert sorted(await until(ended)) == ["clear", "clear", "pause", "select-tag"]
    page = (await http.get("/audit-log")).text
    rows = re.findall(r"<td>([^<]*)</td>.*?class=\"outcome\">(.*?)</span>", page)
    outcomes = [re.sub("<.*?>", "", outcome) for name, outcome in rows if name == "Tag jobs"]
    assert len(outcomes) == 1 and outcomes[0].startswith("3 of 3 jobs, started 20")
    assert ("Clear queue", "started: 9 jobs, unfinished") in rows
    assert "Filter: tag:news" in page and "Begun" not in page


async def test_start_of_a_bulk_action_is_left_out_of_a_later_page(client: Client) -> None:
    ada = Identity("ada", Role.ADMIN)
    for number in range(2):
        await audit_log.record(client, ada, "clear", {}, f"{audit_log.BEGUN}{number} jobs")
    (start, _), _ = await audit_log.read_actions(client, before=None, count=2)
    await audit_log.record(client, ada, f"clear{audit_log.END}", {"begun": start["place"]}, "1")
    for number in range(3):
        await audit_log.record(client, ada, "pause", {"queue": f"{number}"}, "")
    pages, before = list[list[str]](), None
    while before or not pages:
        entries, before = await audit_log.read_actions(client, before=before, count=2)
        pages.append([each["act"] for each in entries])
    assert pages == [["pause", "pause"], ["pause", "clear"], ["clear"]]


async def test_unknown_action_is_called_so(http: httpx.AsyncClient) -> None:
    answer = await http.post("/do/fly", data={"token": await token(http)})
    assert (answer.status_code, answer.text) == (404, "Unknown action.\n")


async def test_options_of_queues_are_described_and_a_reset_asks_first(
    http: httpx.AsyncClient, client: Client
) -> None:
    await client.config.set("mail-rate-limit", "60/60")
    page = (await http.get("/config")).text
    assert "starts of jobs of mail in seconds: 100/60 is 100 per minute" in page
    (sheet,) = re.findall(r"<details[^>]*>(?:(?!</details>).)*Reset mail-rate-limit", page, re.S)
    assert " open" not in sheet.split(">")[0] and "Removes this limit" in sheet


async def test_charts_have_numbers_units_legends_and_time_spans(
    http: httpx.AsyncClient, client: Client
) -> None:
    for _ in range(3):
        await client.queue("mail").put("Greet", {})
        (job,) = await client.queue("mail").pop(worker="ann")
        await (job.complete() if _ else job.fail("no", group="typo"))
    statistics = (await http.get("/queue?name=mail&tab=statistics")).text
    assert statistics.count('<text class="y"') >= 3 and "Jobs per day (UTC)" in statistics
    assert '<span class="k bad">failed</span>' in statistics
    overview = (await http.get("/")).text
    assert "failures per hour" in overview and "24 h ago" in overview
    assert "unserved, stalled, paused, lagging first" in overview
    assert "24 h ago" in (await http.get("/group?name=typo")).text


@browser_test
@pytest.mark.parametrize("script", [True, False])
async def test_exact_times_are_local_with_javascript_and_utc_without(
    browser: Browser, site: str, client: Client, script: bool
) -> None:
    jid = await client.queue("mail").put("Greet", {})
    async with browser_context(
        browser, site, timezone_id="Asia/Tokyo", java_script_enabled=script
    ) as context:
        page = await context.new_page()
        await page.goto(f"/job?jid={jid}")
        shown = page.locator(".timeline time").first
        stamp = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
        text = rf"^(now|.* ago), {stamp} GMT\+9$" if script else rf"^{stamp} UTC$"
        await expect(shown).to_have_text(re.compile(text))


async def test_boxes_of_a_graph_have_the_end_of_a_jid_which_differs(
    http: httpx.AsyncClient, client: Client
) -> None:
    queue = client.queue("mail")
    first, second = [
        await queue.put("Page", {}, jid=f"report-of-the-week-{number}") for number in (6, 7)
    ]
    jid = await queue.put("Report", {}, depends=[first, second])
    graph = (await http.get(f"/job?jid={jid}")).text.partition('class="graph"')[2]
    assert sorted(re.findall(r">waiting · ([^<]+)<", graph)) == [
        "report…-week-6",
        "report…-week-7",
    ]
