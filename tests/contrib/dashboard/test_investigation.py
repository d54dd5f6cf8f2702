"""What an operator looks for in an incident: causes, limits, shares, attempts, links."""

from __future__ import annotations

import asyncio
import html
import re
import time
import weakref
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from aioqless import Client, Fair, Job, Limit, NewJob, chain, group, job
from aioqless.client import failures
from aioqless.contrib.dashboard import Privacy, create_app, dashboard
from aioqless.contrib.dashboard.audit_log import read_entries
from aioqless.contrib.dashboard.formatting import cron_words
from aioqless.contrib.http import Identification, Sessions
from tests.conftest import Until
from tests.contrib.dashboard import jobs
from tests.contrib.dashboard.conftest import OPEN, READER, worked
from tests.contrib.dashboard.steps import do
from tests.contrib.dashboard.test_access import client_of
from tests.reported_runs import report_runs, run_values


async def fail(client: Client, queue: str, klass: str, error: str, worker: str = "ann") -> str:
    """Put a job and let it fail; returns its jid."""
    jid = await client.queue(queue).put(klass, {})
    (job,) = await client.queue(queue).pop(worker=worker)
    await job.fail(f"Traceback:\n{error}: no", group=f"{queue}-{error}")
    return jid


async def test_failures_of_an_error_are_one_row_across_queues(
    http: httpx.AsyncClient, client: Client
) -> None:
    for queue in ("crm", "imports"):
        await fail(client, queue, "shop.load", "KeyError", "new-1")
    await fail(client, "crm", "shop.other", "KeyError")
    page = (await http.get("/failures")).text
    assert page.count(">KeyError</a>") == 1 and "shop.load, shop.other" in page
    assert "<h1>KeyError <small>3 failed" in (await http.get("/group?error=KeyError")).text
    page = (await http.get("/failures?by=class")).text
    assert page.count(">KeyError</a>") == 2 and "in crm, imports, on new-1" in page
    cause = (await http.get("/group?error=KeyError&klass=shop.load")).text
    assert ">2 failed" in cause and cause.count('<code class="jid">') == 2
    assert '<a href="/worker?name=new-1">new-1</a> <small>2</small>' in cause


async def test_only_failures_of_the_last_hour_are_retried(
    redis_url: str, http: httpx.AsyncClient, client: Client
) -> None:
    begun = time.time() - 7200
    async with Client(redis_url, namespace=client.namespace, clock=lambda: begun) as earlier:
        old = await fail(earlier, "crm", "shop.load", "KeyError")
    recent = [await fail(client, queue, "shop.load", "KeyError") for queue in ("crm", "imports")]
    other = await fail(client, "crm", "shop.other", "KeyError")
    said = await do(http, "retry-all", error="KeyError", klass="shop.load", since="3600")
    assert "2 jobs of KeyError in shop.load are being retried" in said
    for jid in recent:
        while (job := await client.jobs.get(jid)) and job.state == "failed":
            await http.get("/failures")
        assert job and job.state == "waiting"
    assert await client.internals.store.states(jids=[old, other]) == ["failed", "failed"]
    said = await do(http, "cancel-all", group="crm-KeyError", since="3600")
    assert "1 jobs of crm-KeyError are being deleted" in said


async def test_jobs_of_the_largest_groups_of_an_error_are_counted_and_changed(
    http: httpx.AsyncClient, client: Client, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "MAX_GROUPS", 2)
    for queue in ("a", "b", "c", "b", "c"):
        await fail(client, queue, "shop.load", "KeyError")
    page = (await http.get("/group?error=KeyError")).text
    assert "<h1>KeyError <small>at least 4 failed" in page and ">Retry 4…<" in page
    assert page.count('<option value="">4</option>') == 2
    assert "4 jobs of KeyError are being retried" in await do(http, "retry-all", error="KeyError")

    async def are_retried() -> bool:
        return await client.jobs.failed_counts() == {"a-KeyError": 1}

    assert await until(are_retried)
    assert "<h1>KeyError <small>1 failed" in (await http.get("/group?error=KeyError")).text


async def test_overview_and_failures_have_the_same_numbers_and_mark_estimates(
    app: Starlette, http: httpx.AsyncClient, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "SAMPLE", 0)
    for klass in ("shop.load", "shop.load", "shop.load", "shop.save", "shop.save"):
        await fail(client, "crm", klass, "KeyError")
    await fail(client, "crm", "shop.load", "OSError")

    def numbers(page: str) -> list[tuple[str, str, str]]:
        _, _, page = page.partition("Failures by error</caption>")
        page, _, _ = page.partition("</table>")
        rows = re.findall(r"/group\?error=(\w+).*?</tr>", page, re.DOTALL)
        cells = re.findall(r'<td class="end bad">([^<]*)<', page)
        growth = re.findall(r"([↑↓=] ~?\d+)</span> in the last hour", page)
        return list(zip(rows, cells, growth, strict=True))

    overview = numbers((await http.get("/")).text)
    assert overview == numbers((await http.get("/failures")).text)
    assert overview == [("KeyError", "5", "↑ 5"), ("OSError", "1", "↑ 1")]
    by_class = numbers((await http.get("/failures?by=class")).text)
    assert ("KeyError", "~2", "↑ ~2") in by_class
    assert ("OSError", "1", "↑ 1") in by_class
    monkeypatch.setattr(failures, "MAX_GROUPS", 1)
    await fail(client, "mail", "shop.load", "KeyError")
    await app.state.dashboard.overviews.read(max_age=0)
    for path in ("/", "/failures"):
        page = (await http.get(path)).text
        assert ">at least 5<" in page, path


async def test_queue_counts_failures_of_its_groups_as_an_estimate(
    http: httpx.AsyncClient, client: Client
) -> None:
    for queue in ("mail", "mailing"):
        await fail(client, queue, "shop.load", "KeyError")
    page = (await http.get("/queue?name=mail")).text
    assert 'href="/failures?q=mail">failed <span class="bad">~1</span>' in page


async def test_queue_shows_how_full_its_limits_are_and_sets_them(
    http: httpx.AsyncClient, client: Client
) -> None:
    for option, value in {"rate-limit": "5/60", "max-concurrency": 3, "max-length": 9}.items():
        await do(http, "config-set", option=f"mail-{option}", value=str(value))
    await client.put_many([NewJob("Greet", {}) for _ in range(4)], queue="mail")
    await client.queue("mail").pop(2, worker="ann")
    await client.internals.store.beat(worker="ann", process="{}", queues=["m*"])
    page = re.sub(r"<meter.*?</meter>", "", (await http.get("/queue?name=mail")).text)
    for text in ("2 of 3 ", "2 of 5 ", "4 of 9 ", '<a href="/worker?name=ann">ann</a>'):
        assert text in page, text
    assert "starts of jobs of mail in seconds" in page and 'value="5/60"' in page


async def test_limit_that_holds_a_job_back_is_shown_without_hidden_values(
    http: httpx.AsyncClient, client: Client
) -> None:
    limits = [Limit(("customer", "token"), max_concurrency=1)]
    data = {"customer": "acme", "token": "123"}
    mail = client.queue("mail")
    jids = {*await mail.put_many([NewJob("Greet", data, limits=limits) for _ in range(2)])}
    (running,) = await mail.pop(2)
    (held,) = jids - {running.jid}
    page = html.unescape((await http.get(f"/job?jid={held}")).text)
    assert 'limit of key Greet:["acme", "•••••"]: 1 of 1 at a time run' in page


async def test_queue_shows_how_full_limits_by_key_are_without_hidden_values(
    http: httpx.AsyncClient, client: Client
) -> None:
    assert "Limits by key" not in (await http.get("/queue?name=mail")).text
    limits = [
        Limit("<api>", rate=(20, 3600)),
        Limit(("customer", "token"), max_concurrency=1),
    ]
    data = {"customer": 7, "token": "123"}
    await client.queue("mail").put_many([NewJob("Greet", data, limits=limits) for _ in range(4)])
    await client.queue("mail").put("Rest", {}, limits=[Limit("token=x", max_concurrency=5)])
    assert len(await client.queue("mail").pop(9)) == 2
    page = (await http.get("/queue?name=mail")).text
    rows = [
        [
            html.unescape(re.sub(r"<span class=.unit.>.*?</span>|<.*?>", "", cell)).strip()
            for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
        ]
        for row in page.split("How full limits")[1].split("</table>")[0].split("<tr>")[2:]
    ]
    assert rows == [
        ['Greet:[7, "•••••"]', "1 of 1", "—", "3", "when one ends"],
        ["token=•••••", "1 of 5", "—", "0", "now"],
        ["<api>", "—", "1 of 20 in 1 h", "0", "now"],
    ]
    assert "the fullest of 3 keys of 5 scheduled and running jobs" in page
    await client.queue("mail").put_many(
        [NewJob("Rest", {}, delay=9, limits=limits[:1]) for _ in range(300)]
    )
    assert "the fullest of at least" in (await http.get("/queue?name=mail&tab=scheduled")).text
    async with client_of(create_app(client, identify=READER)) as http:
        assert "Greet:[•••••]" in (await http.get("/queue?name=mail")).text


async def test_arguments_in_keys_and_tenants_are_hidden_as_data_is(
    http: httpx.AsyncClient, client: Client
) -> None:
    queue = client.queue("mail")
    for name, value in (("customer", "ada-4711"), ("token", "hunter2")):
        for _ in range(2):
            await queue.put(
                "Greet",
                {name: value},
                fair=Fair((name,)),
                limits=[Limit((name,), max_concurrency=1)],
            )
    await queue.pop(9)
    jids = await queue.jids("scheduled")
    paths = ["/queue?name=mail", "/queue?name=mail&tab=tenants", *(f"/job?jid={j}" for j in jids)]
    pages = "".join([(await http.get(path)).text for path in paths])
    assert len(jids) == 2 and "hunter2" not in pages and "ada-4711" in pages
    async with client_of(create_app(client, identify=READER)) as http:
        pages = "".join([(await http.get(path)).text for path in paths])
    assert "hunter2" not in pages and "ada-4711" not in pages
    assert "customer=•••••" in pages and "Greet:[•••••]" in pages


async def test_full_rate_limit_of_a_key_says_when_it_has_room(
    http: httpx.AsyncClient, client: Client
) -> None:
    limit = Limit("api", rate=(1, 3600))
    await client.queue("mail").put_many([NewJob("Greet", {}, limits=[limit]) for _ in range(2)])
    await client.queue("mail").pop(9)
    page = (await http.get("/queue?name=mail")).text.split("How full limits")[1]
    assert re.search("1 of 1 in 1 h.*?room: </span><time", page.split("</table>")[0], re.DOTALL)


async def test_breakdown_counts_classes_tags_and_arguments_without_secrets(
    http: httpx.AsyncClient, client: Client
) -> None:
    rows = [
        NewJob("Load", {"customer": 7 if n % 10 else n, "token": "hunter2"}, tags=["nightly"])
        for n in range(600)
    ]
    await client.put_many(rows, queue="imports")
    page = (await http.get("/queue?name=imports&tab=breakdown")).text
    assert "A sample of 500 of 600 waiting jobs" in page and "hunter2" not in page
    assert "customer=7</a>" in page and "90 %, about 540" in page
    assert ">nightly</a>" in page and "100 %, about 600" in page
    (address,) = re.findall(r'href="([^"]+)">customer=7</a>', page)
    found = html.unescape((await http.get(html.unescape(address))).text)
    assert '"customer": 7' in found and '"customer": 10' not in found


async def test_breakdown_counts_running_and_ended_jobs(
    http: httpx.AsyncClient, client: Client
) -> None:
    for queue in ("imports", "mail"):
        rows = [NewJob("Load", {"customer": 7, "n": n}, tags=[queue]) for n in range(9)]
        await client.put_many(rows, queue=queue)
        for number, each in enumerate((await client.queue(queue).pop(8))[:6]):
            await (each.complete() if number < 4 else each.fail("no", group="typo"))
    for state, count, said in (
        ("running", 2, "All 2 running jobs"),
        ("complete", 4, "4 complete jobs of this queue, found among the latest 8 complete jobs"),
        ("failed", 2, "2 failed jobs of this queue, found among 4 failed jobs of all queues"),
    ):
        page = (await http.get(f"/queue?name=imports&tab=breakdown&of={state}")).text
        assert said in page and f"100 %, {count}<" in page and "mail</a>" not in page
        (address,) = re.findall(r'href="([^"]+)">customer=7</a>', page)
        found = (await http.get(html.unescape(address))).text
        assert found.count('<code class="jid">') == count


async def test_attempts_are_listed_with_worker_and_error(
    http: httpx.AsyncClient, client: Client
) -> None:
    jid = await client.queue("mail").put("Greet", {}, retries=3)
    for worker in ("ann", "bob"):
        (job,) = await client.queue("mail").pop(worker=worker)
        await job.retry(group="mail-OSError", message=f"Traceback:\nOSError: token={worker}")
    await client.queue("mail").pop(worker="eve")
    page = (await http.get(f"/job?jid={jid}")).text.split("h-attempts")[2].split("</section>")[0]
    assert re.findall(r"worker\?name=(\w+)", page) == ["eve", "bob", "ann"]
    assert page.count("OSError: token=•••••") == 2 and ">running" in page


async def test_job_links_are_filled_with_escaped_values_and_never_with_secrets(
    client: Client,
) -> None:
    links = {
        "customer.id": "https://crm.example/{value}",
        "token": "https://x.example/{value}",
        "jid": "https://logs.example/?q={value}",
        "trace_id": "https://traces.example/{value}",
    }
    data = {"customer": {"id": "a b/c"}, "token": "hunter2"}
    trace = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
    trace["token"] = "of-the-context"
    jid = await client.queue("mail").put("Greet", data, context=trace)
    async with client_of(create_app(client, identify=OPEN, job_links=links)) as http:
        page = (await http.get(f"/job?jid={jid}")).text
    assert 'href="https://crm.example/a%20b%2Fc"' in page and f"?q={jid}" in page
    assert "traces.example/4bf92f3577b34da6a3ce929d0e0e4736" in page and "x.example" not in page
    with pytest.raises(ValueError, match="http"):
        create_app(client, job_links={"x": "javascript:{value}"})


async def test_graph_keeps_complete_jobs_with_their_run_times(
    http: httpx.AsyncClient, client: Client
) -> None:
    pages = group(*(NewJob("Page", {"n": n}) for n in range(3)))
    flow = await client.put_flow(
        chain(NewJob("Crawl", {}), pages, NewJob("Report", {})), queue="site"
    )
    (job,) = await client.queue("site").pop()
    await job.complete()
    first, second, third = await client.queue("site").pop(3)
    await first.complete()
    await second.fail("no", group="site-OSError")
    for jid in (flow.last[0], third.jid):
        page = (await http.get(f"/job?jid={jid}")).text
        assert "2 of 5 complete" in page and "1 failed" in page
        graph = page.split('<svg class="graph"')[1].split("</svg>")[0]
        links = re.findall(r'aria-label="(\w+), (\w+), job', graph)
        assert sorted(links) == [
            *[("Crawl", "complete"), ("Page", "complete"), ("Page", "failed")],
            *[("Page", "running"), ("Report", "depends")],
        ]
        assert graph.count('class="arrow"') == 6 and graph.count(" self") == 1
        assert re.search(r"complete · [\d.]+ m?s", graph)
    page = (await http.get("/sets")).text
    assert "2 of 5" in page and "1 failed" in page and f"jid={flow.last[0]}" in page


async def test_stack_of_a_running_job_is_shown_on_request(
    http: httpx.AsyncClient, client: Client, until: Until
) -> None:
    async with worked(client, queues=("stock",)):
        jid = await client.queue("stock").put(jobs.count.data(shelf="A"))

        async def page() -> str | None:
            text = (await http.get("/worker?name=web-1.shop-7421")).text
            return text if f"/job?jid={jid}&amp;stack=1" in text else None

        await until(page)
        assert "in count" in (await http.get(f"/job?jid={jid}&stack=1")).text
    assert "Only a running job has a stack" in (await http.get(f"/job?jid={jid}&stack=1")).text


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("* * * * *", "every minute"),
        ("*/5 * * * *", "every 5 minutes"),
        ("30 * * * *", "every hour, 30 min past the hour"),
        ("0 */6 * * *", "every 6 hours, 0 min past the hour"),
        ("0 6,18 * * *", "every day at 06:00 and 18:00"),
        ("5 9 * * mon-fri", "Monday to Friday at 09:05"),
        ("5 9 * * 1,7", "Monday, Sunday at 09:05"),
        ("0 0 1 * *", "on day 1 of each month at 00:00"),
        ("0 0 13 * fri", ""),
        ("0 0 1 1 *", ""),
        ("*/7 3 * * *", ""),
        ("0 9 * * mon#1", ""),
        ("0 9-17 * * *", ""),
        ("0 0 * * * *", ""),
    ],
)
def test_common_cron_expressions_have_words(expression: str, words: str) -> None:
    assert cron_words(expression) == words


async def test_schedules_show_their_latest_run_and_that_code_overwrites_changes(
    http: httpx.AsyncClient, client: Client, until: Until
) -> None:
    recurring = await client.queue("reports").recur("Greet", {}, cron="0 6 * * *", jid="daily")
    jid = await recurring.run_now()
    page = (await http.get("/recurring")).text
    assert "every day at 06:00" in page and f'/job?jid={jid}"><span class="badge' in page
    hint = "Declared in code: a worker that starts"
    assert hint not in (await http.get("/recurring-job?jid=daily")).text
    async with worked(client, queues=("stock",)):

        async def declared() -> bool:
            return hint in (await http.get("/recurring-job?jid=shop.reports.daily")).text

        await until(declared)


async def test_schedule_lists_its_runs_with_times_and_states(
    redis_url: str, http: httpx.AsyncClient, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = round(time.time()) - 1000.0
    async with Client(redis_url, namespace=client.namespace, clock=lambda: now) as clocked:
        queue = clocked.queue("reports")
        recurring = await queue.recur("Greet", {}, cron="0 6 1 1 *", jid="yearly")
        for ends in ("complete", "fail"):
            await recurring.run_now()
            now += 10
            (job,) = await queue.pop(worker="ann")
            now += 75
            await (job.complete() if ends == "complete" else job.fail("no", group="r-OSError"))
        await recurring.run_now()
    page = (await http.get("/recurring-job?jid=yearly")).text
    rows = page.split("Recent runs, the latest first")[1].split("</table>")[0].split("<tr>")[2:]
    assert [re.findall(r"/job\?jid=([^\"]+)", row) for row in rows] == [
        [f"yearly-{number}"] for number in (3, 2, 1)
    ]
    assert "waiting" in rows[0] and rows[0].count("<time") == 1
    assert "r-OSError" in rows[1] and "/do/retry" in rows[1]
    assert "complete" in rows[2] and rows[2].count("<time") == 3 and "1 min 15 s" in rows[2]
    monkeypatch.setattr("aioqless.contrib.dashboard.pages.job.MAX_INSTANCE_DATA", 5)
    page = (await http.get("/recurring-job?jid=yearly")).text
    assert "Runs with large data" in page and page.count("/job?jid=yearly-") == 3


async def test_new_job_is_put_by_a_form_of_its_handler_and_checked(client: Client) -> None:
    async with client_of(create_app(client, identify=OPEN, handlers=[jobs])) as http:
        page = (await http.get("/new-job?klass=shop.pictures.resize")).text
        assert "path: str<input" in page and "width: int = 100<input" in page
        form = {"klass": "shop.pictures.resize", "arg-path": "42", "queue": "pictures"}
        said = await do(http, "put", **form, **{"arg-width": "wide"})
        assert said.startswith("refused: ") and "width must be int" in said
        assert (await do(http, "put", **form, **{"arg-width": "7"})).startswith("done: ")
    (jid,) = await client.queue("pictures").jids("waiting")
    for entry in await read_entries(client, logins=False, before=None, count=9):
        assert not entry["about"].keys() & form.keys() - {"klass", "queue"}, entry
        assert entry["about"]["data"] in ("6 characters", "3 characters")
    job = await client.jobs.get(jid)
    assert job and (job.klass, job.data) == ("shop.pictures.resize", {"path": "42", "width": 7})


@job(klass="shop.join")
def join(job: Job, parts: list[object]) -> None: ...


async def test_deeply_nested_value_of_a_new_job_is_refused(client: Client) -> None:
    form = {"klass": "shop.join", "queue": "pictures", "arg-parts": "[" * 3000}
    async with client_of(create_app(client, identify=OPEN, handlers=[join])) as http:
        assert "parts must be list[object]" in await do(http, "put", **form)


FACTS: dict[str, Any] = {
    "host": "shop",
    "pid": 77,
    "version": "1.4.2",
    "aioqless": "1",
    "slots": 10,
    "busy": 7,
    "memory": 300 << 20,
    "started": 1_000_000_000,
}


async def report(client: Client, ago: float, version: str, runs: list[int]) -> None:
    """Report runs of a klass, as a worker does."""
    rows = [("imports", "shop.load", runs)]
    await report_runs(client, time.time() - ago, rows, **{**FACTS, "version": version})


async def test_klasses_are_sorted_by_change_and_red_if_more_of_them_fails(
    http: httpx.AsyncClient, client: Client
) -> None:
    now = time.time()
    for version, ago, failed in (("1", 3000, 9), ("2", 1500, 18)):
        rows = [
            ("mail", "failing", run_values(100, failures=failed)),
            ("mail", "same", run_values(100, failures=50)),
        ]
        await report_runs(client, now - ago, rows, **{**FACTS, "version": version})
    page = (await http.get("/classes?hours=1&sort=changed")).text
    names = re.findall(r'<a class="row" [^>]*>(\w+)</a>', page)
    assert names[0] == "failing"
    red = re.findall(
        r'<a class="row" [^>]*>(\w+)</a>(?:(?!</tr>).)*?<td class="end bad">', page, re.DOTALL
    )
    assert red == ["failing"]


async def test_klass_is_compared_before_and_after_the_last_deploy(
    http: httpx.AsyncClient, client: Client
) -> None:
    assert "No runs in this time" in (await http.get("/class?name=shop.load")).text
    await report(client, 3000, "1.4.1", run_values(100, failures=1))
    await report(client, 1500, "1.4.2", run_values(50, failures=10))
    async with client_of(create_app(client, identify=OPEN)) as http:
        page = (await http.get("/class?name=shop.load&hours=1")).text
        rows = {
            label: re.findall(r"<td[^>]*>([\d,]+)<", row)
            for label, row in re.findall(r'<th scope="row">([^<]*)<(.*?)</tr>', page, re.DOTALL)
        }
        assert rows["all"][0] == "150" and rows["since 1.4.2"][0] == "50"
        assert "20 %" in page and page.count('class="mark"') == 8 and "Runs per minute" in page
        assert "1 % → 20 %" in (await http.get("/classes?hours=1")).text
        overview = (await http.get("/?hours=1")).text
        assert "Failures per minute" in overview and "<title>1.4.2, " in overview
        await fail(client, "imports", "shop.load", "KeyError")
        assert "1 since 1.4.2" in (await http.get("/failures")).text
        cause = (await http.get("/group?error=KeyError&klass=shop.load")).text
        assert "failed since the deploy of 1.4.2 (1)" in cause


async def test_exact_klass_in_a_search_links_to_its_page(
    http: httpx.AsyncClient, client: Client
) -> None:
    await report(client, 60, "1", run_values(1))
    link = '<a href="/class?name=shop.load">'
    for text, links in (
        ("shop.load", True),
        ("state:failed klass:shop.load", True),
        ("-klass:shop.load", False),
        ("shop", False),
    ):
        assert (link in (await http.get("/jobs", params={"filter": text})).text) == links, text


async def test_viewers_share_a_read_which_is_dropped_when_it_expires(
    client: Client, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dashboard, "CACHED_FOR", 0.0)
    reads: list[weakref.ref[Reading]] = []
    begun, may_end = asyncio.Event(), asyncio.Event()

    class Reading: ...

    async def read() -> Reading:
        found = Reading()
        reads.append(weakref.ref(found))
        begun.set()
        await may_end.wait()
        if len(reads) == 2:
            raise OSError("no Redis")
        return found

    shared = dashboard.Dashboard(
        client, Identification(OPEN, Sessions("", 9, "Lax")), privacy=Privacy()
    )
    first, *others = [asyncio.create_task(shared.cached("runs", read)) for _ in range(10)]
    await begun.wait()
    first.cancel()  # its viewer has left
    may_end.set()
    assert len({await each for each in others}) == len(reads) == 1
    del first, others
    await until(lambda: asyncio.sleep(0, reads[0]() is None))
    with pytest.raises(OSError, match="no Redis"):
        await shared.cached("runs", read)
    assert await shared.cached("runs", read) is reads[2]()
    await shared.aclose()


async def test_worker_shows_its_memory_and_slots_over_time(
    http: httpx.AsyncClient, client: Client
) -> None:
    await client.queue("imports").put("Load", {})
    await client.queue("imports").pop(worker="ann")
    for ago in (120, 0):
        facts = {**FACTS, "memory": (300 - ago) << 20}
        await report_runs(client, time.time() - ago, queues=["imports"], **facts)
    page = re.sub(r"<meter.*?</meter>", "", (await http.get("/worker?name=ann")).text)
    for text in ("300 MiB", "7 of 10 busy", "1.4.2", "77 <small>on shop", "ago: 180 MiB"):
        assert text in page, text
    assert page.count('<svg class="chart"') == 2
    assert "7 of 10<" in (await http.get("/workers")).text
    assert "1 worker, 7 of 10 slots busy" in (await http.get("/queue?name=imports")).text


async def test_worker_whose_memory_has_grown_for_long_is_marked(
    http: httpx.AsyncClient, client: Client
) -> None:
    names = ("ann", "bob", "eve")
    for name in names:
        await client.queue("imports").put("Load", {})
        await client.queue("imports").pop(worker=name)
    now = time.time()
    for ago in range(80, -1, -1):
        for name, memory in zip(names, (300 - 2 * ago, 300, 300 + ago % 40 * 3), strict=True):
            facts = {**FACTS, "memory": memory << 20}
            await report_runs(client, now - 60 * ago, worker=name, **facts)
    rows = (await http.get("/workers")).text.split("<tr>")
    (row,) = [row for row in rows if "rising: " in row]
    assert "/worker?name=ann" in row and "rising: +120 MiB in 1 h 20 min" in row
    assert re.search(r"<title>[\d.]+ MiB to [\d.]+ MiB in the last \d+ min", row)


async def test_worker_that_starts_ahead_of_the_clock_of_the_dashboard_is_shown(
    http: httpx.AsyncClient, client: Client
) -> None:
    await report_runs(client, time.time() + 120, **FACTS)
    assert (await http.get("/worker?name=ann")).status_code == 200
