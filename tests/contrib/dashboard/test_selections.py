"""The Jobs page, and actions on all jobs that it has found."""

from __future__ import annotations

import re
from html import unescape

import httpx
import pytest
from starlette.applications import Starlette

from aioqless import Client, NewJob, Queue
from aioqless.contrib.dashboard import Privacy
from aioqless.contrib.dashboard.app import create_app
from aioqless.contrib.dashboard.bulk_actions import STEP
from aioqless.contrib.dashboard.pages import job_lists
from aioqless.contrib.encryption import Encryption
from aioqless.contrib.http import Identity, Role
from aioqless.contrib.job_filter import STATES
from tests.conftest import Until
from tests.contrib.dashboard.conftest import OPEN
from tests.contrib.dashboard.steps import do
from tests.contrib.dashboard.test_access import client_of


async def has(queue: Queue, count: int) -> bool:
    return await queue.length() == count


async def chosen(http: httpx.AsyncClient, text: str, label: str) -> tuple[str, dict[str, str]]:
    """Choose an action on the jobs of a filter; return the page, and the form's fields."""
    page = (await http.get("/jobs", params={"filter": text})).text
    link = re.search(rf'href="([^"]+)">{label}…</a>', page)
    assert link, page
    page = (await http.get(unescape(link[1]))).text
    return page, fields_of(page)


def fields_of(page: str) -> dict[str, str]:
    found = re.findall(r'name="(filter|partial|found)" value="([^"]*)"', page.partition("/do/")[2])
    return {name: unescape(value) for name, value in found}


async def test_jobs_of_a_filter_are_counted_and_changed(
    http: httpx.AsyncClient, client: Client, until: Until
) -> None:
    mail, slow = client.queue("mail"), client.queue("slow")
    await mail.put_many(NewJob("Greet", {"customer": n}, tags=["news"]) for n in range(3))
    await mail.put("Greeting", jid="other")
    (job,) = await mail.pop()
    await job.fail("no such word", group="typo")

    page, fields = await chosen(http, "tag:news", "Move")
    assert "Move 2 jobs</button>" in page
    assert "2 jobs are being moved" in await do(http, "select-move", **fields, queue="slow")
    assert await until(lambda: has(slow, 2))
    page, fields = await chosen(http, "klass:Greet", "Retry")
    assert "Retry 1 job</button>" in page
    await do(http, "select-retry", **fields)
    assert await until(lambda: has(mail, 2))
    _, fields = await chosen(http, "customer:0", "Tag")
    await do(http, "select-tag", **fields, tags="vip, urgent")
    assert await until(lambda: client.jobs.tagged_jids("urgent"))
    page, fields = await chosen(http, "Greet", "Set priority")
    assert "Set priority of 4 jobs</button>" in page
    await do(http, "select-priority", **fields, priority="-5")

    async def is_changed() -> bool:
        jobs = await mail.peek(count=1)
        return jobs[0].priority == -5

    assert await until(is_changed)
    _, fields = await chosen(http, "klass:Greet", "Delete")
    await do(http, "select-cancel", **fields)
    assert await until(lambda: has(slow, 0)) and await until(lambda: has(mail, 1))
    assert "no job was found" in await do(http, "select-cancel", filter="x", found="0")
    assert "found is missing" not in await do(http, "select-cancel", filter="x", found="1")
    assert "Filter" in (log := (await http.get("/audit-log")).text) and "klass:Greet" in log


async def test_all_jobs_of_a_filter_are_changed_though_the_page_has_searched_a_part(
    app: Starlette,
    http: httpx.AsyncClient,
    client: Client,
    until: Until,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mail = client.queue("mail")
    for klass, count in (("Greet", 1500), ("Other", 1200)):
        await mail.put_many([NewJob(klass) for _ in range(count)])
    monkeypatch.setattr(job_lists, "SEARCH_TIME", 0)
    page, fields = await chosen(http, "klass:Greet", "Delete")
    assert "of at least 2,700" in page and "All jobs of the filter are changed" in page
    assert "Delete all jobs of the filter</button>" in page
    await mail.put_many([NewJob("Greet", priority=-5) for _ in range(7)])
    assert "All jobs of the filter are being deleted" in await do(http, "select-cancel", **fields)
    (action,) = app.state.dashboard.bulk_actions.recent()
    await until(lambda: action.ended)
    assert (action.done, action.total, action.skipped) == (1500, 1500, 0)
    assert await has(mail, 1200 + 7)  # those that were put after the page are left


async def test_job_on_which_one_of_a_later_step_depends_is_deleted_with_it(
    http: httpx.AsyncClient, client: Client, until: Until
) -> None:
    mail = client.queue("mail")
    jids = [f"job-{n}" for n in range(STEP + 50)]
    await mail.put_many(NewJob("Greet", jid=jid, tags=["news"]) for jid in jids)
    listed = (await client.jobs.search("tag:news state:waiting")).jids
    await mail.put("Greeting", jid="last", tags=["news"], depends=listed[:1])
    _, fields = await chosen(http, "klass:Greet*", "Delete")
    await do(http, "select-cancel", **fields)

    async def are_deleted() -> bool:
        return (await client.jobs.tagged_jids("news"))[0] == 0

    assert await until(are_deleted)


async def test_search_says_how_much_it_has_searched_and_goes_on(
    http: httpx.AsyncClient, client: Client
) -> None:
    await client.queue("mail").put_many(NewJob("Greet") for _ in range(120))
    page = (await http.get("/jobs?filter=klass:Greet")).text
    assert "<strong>50</strong> found in 50 jobs searched, of at least 120." in page
    shown = set(re.findall(r'<code class="jid">(\w+)', page))
    while following := re.search(r'rel="next" href="([^"]+)"', page):
        page = (await http.get(unescape(following[1]))).text
        shown |= set(re.findall(r'<code class="jid">(\w+)', page))
    assert len(shown) == 120 and "<strong>120</strong> found in 120 jobs searched." in page


@pytest.mark.parametrize("asked", ["", "&on=1"])
async def test_search_continues_by_itself_until_it_finds_something(
    http: httpx.AsyncClient, client: Client, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    monkeypatch.setattr(job_lists, "SEARCH_TIME", 0)
    await client.queue("mail").put("Greet", {"customer": 4711})
    await client.queue("mail").put_many(NewJob("Greet", priority=-1) for _ in range(2000))
    page, pages = (await http.get(f"/jobs?filter=customer:4711{asked}")).text, 1
    while following := re.search(r'http-equiv="refresh" content="0; url=([^"]+)"', page):
        assert "found in" in page and "Stop</a>" in page
        page, pages = (await http.get(unescape(following[1]))).text, pages + 1
    assert pages > 3 and "<strong>1</strong> found in 2,001 jobs searched." in page
    monkeypatch.setattr(job_lists, "FOLLOWS_FOR", -1)
    page = (await http.get(f"/jobs?filter=customer:4711{asked}")).text
    assert ("Continue</a>" in page) == (not asked)  # the time is over, unless the user continues


async def test_filter_is_completed_and_a_malformed_one_explained(
    http: httpx.AsyncClient, client: Client
) -> None:
    await client.queue("slow lane").put("Greet", tags=["news"])
    await client.queue("mail").put("Greet", tags=["news"])
    page = unescape((await http.get("/jobs?filter=Greet")).text)
    for word in (f"state:{STATES[0]}", 'queue:"slow lane"', "tag:news", "age:"):
        assert f'<option value="Greet {word}">' in page
    page = unescape((await http.get("/jobs?filter=stat:failed")).text)
    assert "unknown key 'stat'; did you mean 'state'?" in page
    assert "is not a cursor" in unescape((await http.get("/jobs?filter=x&cursor=y")).text)


async def test_encrypted_data_is_said_not_to_be_filtered(
    http: httpx.AsyncClient, client: Client
) -> None:
    async with Client(
        client.url, namespace=client.namespace, codec=Encryption("k" * 43 + "=")
    ) as sealed:
        await sealed.queue("mail").put("Greet", {"customer": 4711})
    page = (await http.get("/jobs?filter=customer:4711")).text
    assert "1 job left out: encrypted or large data" in page


@pytest.mark.parametrize(
    ("text", "role", "refusal"),
    [
        ("-api_token:x*", Role.ADMIN, "api_token is hidden in the dashboard"),
        ("a.API_TOKEN.b:x", Role.ADMIN, "a.API_TOKEN.b is hidden"),
        ("customer:1", Role.OPERATE, "your role may not see job data"),
    ],
)
async def test_hidden_data_cannot_be_found_out_by_a_filter(
    client: Client, text: str, role: Role, refusal: str
) -> None:
    await client.queue("mail").put("Greet", {"api_token": "abc", "customer": 1})
    app = create_app(
        client, identify=lambda _: Identity("ann", role), privacy=Privacy(data_for=Role.ADMIN)
    )
    async with client_of(app) as http:
        page = (await http.get("/jobs", params={"filter": text})).text
        assert refusal in unescape(page) and "Greet" not in page
        if role == Role.ADMIN:  # who has a form with the token
            changed = await do(http, "select-tag", filter=text, found="1", tags="found")
            assert refusal in unescape(changed)


@pytest.mark.parametrize("text", ["data.-ssn:4*", "-data.-ssn:x*"])
async def test_name_that_begins_with_a_minus_is_not_read_as_another_one_that_is_hidden(
    client: Client, until: Until, text: str
) -> None:
    mail = client.queue("mail")
    await mail.put("Greet", {"ssn": "4711"}, jid="hidden")
    await mail.put("Greet", {"ssn": "x", "-ssn": "4712"}, jid="meant")
    await mail.put("Greet", {"ssn": "x", "-ssn": "x"}, jid="other")
    wanted = {"meant"} if text[0] == "d" else {"meant", "hidden"}
    async with client_of(
        create_app(client, identify=OPEN, privacy=Privacy(redact=("ssn",)))
    ) as http:
        page = (await http.get("/jobs", params={"filter": text})).text
        assert set(re.findall(r"/job\?jid=(\w+)", page)) == wanted
        _, fields = await chosen(http, text, "Delete")
        await do(http, "select-cancel", **fields)
        assert await until(lambda: has(mail, 3 - len(wanted)))
        assert not await client.jobs.multiget(*wanted)


async def test_filter_by_data_is_not_shown_to_those_who_may_not_see_data(client: Client) -> None:
    await client.queue("mail").put("Greet", {"customer": "acme-4711"})
    role = Role.ADMIN
    async with client_of(create_app(client, identify=lambda _: Identity("ann", role))) as http:
        await do(http, "select-tag", filter="customer:acme-4711", found="1", tags="x")
        assert "customer:acme-4711" in (await http.get("/")).text
        role = Role.READ
        for path in ("/", "/failures"):
            page = (await http.get(path)).text
            assert "1 of 1 tagged" in page and "acme-4711" not in page


async def test_filter_that_is_too_long_is_refused_also_for_an_action(
    http: httpx.AsyncClient, client: Client
) -> None:
    mail = client.queue("mail")
    await mail.put("Greet")
    text = f"klass:Greet{' ' * 4200}state:failed"  # which would find the job if it were cut
    refusal = "a filter has at most 4,000 characters (got 4,223)"
    assert refusal in (await http.get("/jobs", params={"filter": text})).text
    assert "at most 4,100" in await do(http, "select-cancel", filter=text, found="1")
    assert "is not a cursor" in (await http.get("/jobs?cursor=" + "a" * 9000)).text
