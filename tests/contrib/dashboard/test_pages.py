"""Pages, requested over HTTP."""

from __future__ import annotations

import html
import re
import time
from typing import Any

import httpx
import pytest

from aioqless import Client, Fair, Key, Limit, NewJob, Unique
from aioqless.client.overview import OverviewReader
from aioqless.client.redis_server import server_info
from aioqless.client.run_buckets import RUN_BUCKETS, WAITS, bucket_of
from aioqless.contrib.dashboard.pages import PAGES
from aioqless.contrib.dashboard.pages.overview import find_alarms
from aioqless.contrib.dashboard.redaction import HIDDEN
from aioqless.contrib.human_tasks import TaskQueue
from tests.contrib.dashboard.steps import do
from tests.reported_runs import report_runs

WITH = {
    "/queue": "?name=mail", "/job": "?jid=none", "/group": "?name=mail-ValueError",
    "/worker": "?name=ann", "/set": "?name=none",
    "/recurring-job": "?jid=none", "/class": "?name=Greet", "/jobs": "?filter=mail",
}  # fmt: skip
EVERY_PAGE = [path + WITH.get(path, "") for path in PAGES]


async def test_every_page_of_an_empty_namespace_has_a_hint(http: httpx.AsyncClient) -> None:
    for page in EVERY_PAGE:
        answer = await http.get(page)
        there = not page.startswith(("/job?", "/recurring-job", "/set?"))
        assert answer.status_code == (200 if there else 404), page
        assert page.startswith(("/config", "/redis")) or 'class="empty"' in answer.text, page


TEMPLATES = (
    "{payload[id]}",
    "{when:>300000000}",
    "{when.__class__.__mro__}",
    "{",
    "{}",
    "{0}",
    "{what!r:{what}}",
    "%s %(x)s",
    "${x}",
    "\\1",
)


async def test_log_messages_are_shown_verbatim_and_never_evaluated(
    http: httpx.AsyncClient, client: Client
) -> None:
    jid = await client.queue("mail").put("Greet", {})
    (job,) = await client.queue("mail").pop()
    for text in (*TEMPLATES, "token=hunter2"):
        await job.log(text, more="{payload[id]}", payload={"id": 7})
    answer = await http.get(f"/job?jid={jid}")
    assert answer.status_code == 200 and len(answer.text) < 100_000
    shown = [html.unescape(each) for each in re.findall(r"<strong>(.*?)</strong>", answer.text)]
    assert shown[::-1][2:-1] == list(TEMPLATES) and shown[0] == f"token={HIDDEN}"


async def test_event_without_fields_is_shown_by_its_name(
    http: httpx.AsyncClient, client: Client
) -> None:
    jid = await client.queue("mail").put("Greet", {})
    history = (
        f"{client.namespace}:j:{jid}-history",
        '[1, "popped", {"worker": {"x": 1}}]',
        '[2, "failed", {}]',
        '[3, ["put"], {}]',
    )
    await client.redis.rpush(*history)
    answer = await http.get(f"/job?jid={jid}")
    assert answer.status_code == 200 and "<strong>failed</strong>" in answer.text


@pytest.mark.parametrize(
    "query",
    [
        "offset=-1",
        "offset=9e99",
        "offset=99999999999999999999",
        "tab=%ff%00&sort=x&day=-5&q=%00",
        "name=",
        "jid=",
    ],
)
async def test_no_parameter_breaks_a_page(
    http: httpx.AsyncClient, client: Client, query: str
) -> None:
    await client.queue("mail").put("Greet", {})
    for page in EVERY_PAGE:
        answer = await http.get(f"{page}{'&' if '?' in page else '?'}{query}")
        assert answer.status_code in (200, 400, 404), page


async def test_copy_of_a_job_has_its_limits_its_tenant_and_its_unique_key(
    http: httpx.AsyncClient, client: Client
) -> None:
    mail = client.queue("mail")
    limits: dict[str, Any] = {
        "limits": [Limit(("to",), max_concurrency=1)],
        "fair": Fair(("to",)),
    }
    jid = await mail.put("Greet", {"to": "ada"}, unique=("to",), **limits)
    same = await do(http, "put-again", jid=jid, how="new", data='{"to": "ada"}')
    assert "has the unique key" in same
    await do(http, "put-again", jid=jid, how="new", data='{"to": "bob"}')
    copy = await mail.put("Greet", {"to": "bob"}, unique=("to",))
    assert {each.jid for each in await mail.pop(5)} == {jid, copy}
    assert await mail.length() == 2
    assert {each.key for each in await mail.tenants()} == {"to=ada", "to=bob"}
    await mail.put("Greet", {"to": "bob"}, **limits)
    assert await mail.pop(5) == []


async def test_copy_of_a_debounced_job_leaves_that_as_it_is(
    http: httpx.AsyncClient, client: Client
) -> None:
    options: dict[str, Any] = {"unique": Unique(("to",), debounce=600)}
    jid = await client.queue("mail").put("Greet", {"to": "ada", "n": 1}, **options)
    said = await do(http, "put-again", jid=jid, how="new", data='{"to": "ada", "n": 2}')
    assert "no other one was enqueued" in said
    assert (await client.jobs.multiget(jid))[0].data == {"to": "ada", "n": 1}


async def test_unserved_jobs_are_shown_with_a_hint(
    http: httpx.AsyncClient, client: Client, earlier: Client
) -> None:
    await earlier.queue("mail").put("Greet", {})
    await earlier.queue("held").put("Greet", {})
    await client.queue("new").put("Greet", {})
    await client.queue("held").pause()
    await client.queue("other").put("Greet", {})
    await client.queue("other").pop(worker="ann")
    overview = (await http.get("/")).text
    assert "no worker takes them: mail." in overview
    assert "Paused queues with waiting jobs: held." in overview
    told = [
        each
        for each in ("mail", "held", "new", "other")
        if "no worker serves it" in (await http.get(f"/queue?name={each}")).text
    ]
    assert told == ["mail"]
    assert "-q mail</code>" in (await http.get("/queue?name=mail")).text


async def test_tenants_of_a_queue_are_paged(http: httpx.AsyncClient, client: Client) -> None:
    jobs = [NewJob("Greet", fair=Fair(Key(f"tenant-{n}"))) for n in range(60)]
    await client.put_many(jobs, queue="mail")
    first = (await http.get("/queue?name=mail&tab=tenants")).text
    assert 'rel="next"' in first
    last = (await http.get("/queue?name=mail&tab=tenants&offset=50")).text
    assert 'rel="next"' not in last
    assert len(set(re.findall(r"tenant-\d+", first + last))) == 60


async def test_statistics_of_a_queue_show_retries_and_their_parts(
    http: httpx.AsyncClient, client: Client
) -> None:
    mail = client.queue("mail")
    await mail.put("Greet")
    for _ in range(2):
        (job,) = await mail.pop()
        await job.retry()
    page = (await http.get("/queue?name=mail&tab=statistics")).text
    assert "<dt>Retries</dt><dd>2 <small>2 explicit, 0 lost locks</small></dd>" in page
    assert "&lt; 1 s: 2<" in page  # no worker has measured the waits


async def test_waits_and_runs_below_a_second_are_distinguished(
    http: httpx.AsyncClient, client: Client, redis_url: str
) -> None:
    now = [int(time.time()) + 0.5]
    async with Client(redis_url, namespace=client.namespace, clock=lambda: now[0]) as timed:
        jid = await timed.queue("mail").put("Greet", {})
        now[0] += 0.3
        (job,) = await timed.queue("mail").pop()
        now[0] += 0.0042
        await job.complete()
    page = (await http.get(f"/job?jid={jid}")).text
    assert 'aria-label="waited 300 ms, ran 4.2 ms"' in page
    widths = [
        float(width)
        for width in re.findall(
            r'<rect class="(?:wait|run)" x="[0-9.]+" y="0" width="([0-9.]+)"', page
        )
    ]
    assert widths[0] > 10 * widths[1]
    values = [0, 0, 42, 3000, bucket_of(0.0042, RUN_BUCKETS), 1, WAITS + bucket_of(0.3, 1), 1]
    await report_runs(client, time.time(), [("mail", "Greet", values)])
    page = (await http.get("/queue?name=mail&tab=statistics")).text
    assert "&lt; 500 ms: 1<" in page and "&lt; 4.9 ms: 1<" in page
    assert re.search(r"Wait time: mean <strong>300 ms</strong>, p50 <strong>(3|4)\d\d ms<", page)
    assert re.search(r"Run time: mean <strong>4.2 ms</strong>, p50 <strong>[34]\.\d ms<", page)


async def test_page_of_a_job_shows_actions_of_people(
    http: httpx.AsyncClient, client: Client
) -> None:
    jid = await client.queue("review").put("Review", {})
    desk = TaskQueue(client, "review")
    if mine := await desk.reserve("ada"):
        await mine.hand_over("bob")
    if his := await desk.reserve("bob"):
        await his.skip()
    page = (await http.get(f"/job?jid={jid}")).text
    assert "Handed over by ada to bob" in page and "Skipped by bob" in page
    assert re.search(r'aria-label="waited [^",]*, ran [^",]*, waited [^",]*"', page)


async def test_page_explains_repeatedly_lost_locks_and_marks_a_stalled_job(
    http: httpx.AsyncClient, client: Client, earlier: Client
) -> None:
    for jid in ("poison", "stuck"):
        await earlier.queue(jid).put("Greet", {}, jid=jid, retries=0)
        await earlier.queue(jid).pop(worker="ann")
    await client.config.set("grace-period", 0)
    for _ in range(2):  # the holder is notified first, then others may pop the job
        await client.queue("poison").pop(worker="bob")
    page = (await http.get("/job?jid=poison")).text
    assert "Job exhausted retries" in page and "<dd>0 of 0</dd>" in page
    assert "may kill or block its workers" in page
    for path in ("/worker?name=ann", "/job?jid=stuck"):
        assert 's-stalled">stalled' in (await http.get(path)).text, path
    assert "in stuck, stalled, since" in (await http.get("/workers")).text
    assert "Greet, stalled<" in (await http.get("/")).text
    assert "when a worker polls this queue" in (await http.get("/queue?name=stuck")).text
    await client.queue("stuck").pause()
    assert "Resume the queue" in (await http.get("/queue?name=stuck")).text
    told = [each.problem for each in find_alarms(await OverviewReader(client).read())]
    assert any(what.startswith("Paused queues with waiting jobs: stuck") for what in told)


def test_persistence_is_derived_from_the_fields_of_info() -> None:
    fields = {
        "aof_enabled": "0",
        "rdb_last_save_time": "1793900000",
        "rdb_last_bgsave_time_sec": "-1",
    }
    assert server_info(fields).persistence == "none (no snapshot since it started)"
    snapshots = {**fields, "rdb_last_bgsave_time_sec": "0"}
    assert server_info(snapshots).persistence == "snapshots"
    assert server_info({**fields, "aof_enabled": "1"}).persistence == "append-only file"
