"""Jobs are searched by a filter."""

from __future__ import annotations

import json
import random
from base64 import b64encode
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from aioqless import Client, NewJob
from aioqless.client.job.summaries import JobSummary
from aioqless.contrib.encryption import Encryption
from aioqless.contrib.job_filter import JobFilter
from aioqless.errors import InvalidArgument

KLASSES = ("app.mail.greet", "app.mail.bill", "shop.Pack")
TAGS = ("news", "vip", 'odd "one"')


async def found(client: Client, text: str, count: int = 7) -> list[str]:
    """Search to the end, in small portions."""
    return [jid async for page in client.jobs.filter(text, count=count) for jid in page.jids]


async def fill(client: Client, chance: random.Random, jobs: int = 150) -> None:
    """Put jobs of all states into three queues."""
    runs: list[str] = []
    for number in range(jobs):
        queue = client.queue(chance.choice(["mail", "post", "slow lane"]))
        jid = await queue.put(
            chance.choice(KLASSES),
            {
                "customer": chance.choice([4711, 4712, "4711", 9007199254740993, None]),
                "items": [{"sku": chance.choice(["abc", "a b", "ä"])} for _ in range(number % 3)],
                "state": chance.choice(["open", True]),
            },
            jid=f"j{number}",
            tags=chance.sample(TAGS, number % 3),
            delay=chance.choice([0, 0, 0, 600]),
        )
        if chance.random() < 0.1:
            await queue.put("app.after", {}, depends=[jid])
        if chance.random() < 0.6:
            (job,) = await queue.pop(worker=chance.choice(["ann", "bob"])) or (None,)
            if job is not None:
                match chance.choice(["complete", "complete", "fail", "run"]):
                    case "complete":
                        await job.complete()
                    case "fail":
                        await job.fail("no such word", group=chance.choice(["typo", "a:b"]))
                    case "run":
                        runs.append(job.jid)
    await client.jobs.unlock(*runs[:3])


def data_at(path: list[str], job: JobSummary) -> str | None:
    """Return the text of the scalar at a path of the data."""
    value: Any = json.loads(job.data or "null")
    for name in path:
        if isinstance(value, dict):
            value = value.get(name, ...)
        elif isinstance(value, list) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    if isinstance(value, str):
        return value
    return None if value is ... or isinstance(value, dict | list) else json.dumps(value)


def is_in(state: str, job: JobSummary) -> bool:
    return job.state == state and not job.is_stalled


EXPECTED: dict[str, Callable[[JobSummary], bool]] = {
    "": lambda _: True,
    **{
        f"state:{state}": partial(is_in, state)
        for state in ("waiting", "scheduled", "depends", "running", "failed", "complete")
    },
    "state:stalled": lambda job: job.is_stalled,
    "-state:complete,failed": lambda job: job.state not in ("complete", "failed"),
    "queue:mail": lambda job: "mail" in (job.queue, job.last_queue),
    'queue:"slow lane" state:waiting': (
        lambda job: job.state == "waiting" and job.queue == "slow lane"
    ),
    "klass:app.mail.*": lambda job: job.klass.startswith("app.mail."),
    "klass:*.greet,*Pa*": lambda job: job.klass.endswith(".greet") or "Pa" in job.klass,
    "MAIL": lambda job: "mail" in job.klass,
    "j17": lambda job: job.jid == "j17",
    "jid:j3,j5,none,j3": lambda job: job.jid in ("j3", "j5"),
    "queue:mail,mail -state:complete,failed": lambda job: job.queue == "mail" and not job.group,
    "jid:j1* -jid:j1": lambda job: job.jid.startswith("j1") and job.jid != "j1",
    "tag:news": lambda job: "news" in job.tags,
    "tag:news,vip": lambda job: bool({"news", "vip"} & {*job.tags}),
    "tag:news tag:vip": lambda job: {"news", "vip"} <= {*job.tags},
    'tag:"odd \\"one\\"" state:complete': (
        lambda job: job.state == "complete" and TAGS[2] in job.tags
    ),
    "-tag:*": lambda job: not job.tags,
    "worker:ann": lambda job: (
        "ann" in (job.worker, job.last_worker) or (job.state == "failed" and job.retries < 0)
    ),
    "worker:ann state:running": lambda job: job.state == "running" and job.worker == "ann",
    "group:typo": lambda job: job.state == "failed" and job.group == "typo",
    'group:"a:b",typo': lambda job: job.state == "failed",
    "customer:4711": lambda job: data_at(["customer"], job) == "4711",
    "customer:471*": lambda job: (data_at(["customer"], job) or "").startswith("471"),
    "customer:9007199254740993": lambda job: data_at(["customer"], job) == "9007199254740993",
    "-customer:null state:waiting": (
        lambda job: job.state == "waiting" and data_at(["customer"], job) != "null"
    ),
    'items.0.sku:"a b",ä': lambda job: data_at(["items", "0", "sku"], job) in ("a b", "ä"),
    "items.1.sku:abc": lambda job: data_at(["items", "1", "sku"], job) == "abc",
    "items:abc": lambda _: False,
    "data.state:true": lambda job: data_at(["state"], job) == "true",
    "age:<1h": lambda _: True,
    "age:>1h": lambda _: False,
    "run:<1h state:complete": lambda job: job.state == "complete" and job.ran is not None,
    "run:>1h": lambda _: False,
}


@pytest.mark.parametrize("seed", range(3))
async def test_search_finds_what_a_model_finds(client: Client, seed: int) -> None:
    chance = random.Random(seed)
    await fill(client, chance)
    everything = await found(client, "")
    assert len(everything) == len(set(everything)) >= 150
    summaries = await client.jobs.summaries(*everything)
    assert {job.state for job in summaries} == {
        "waiting", "scheduled", "depends", "running", "stalled", "failed", "complete",
    }  # fmt: skip
    failed = {job.jid: job for job in await client.jobs.multiget(*everything) if job.failure}
    for text, expected in EXPECTED.items():
        wanted = [job.jid for job in summaries if expected(job)]
        if text == "worker:ann":
            wanted += [
                jid
                for jid, job in failed.items()
                if job.state == "failed" and job.failure and job.failure.worker == "ann"
            ]
        jids = await found(client, text, chance.choice([1, 7, 1000]))
        assert sorted(jids) == sorted(wanted), text


async def test_total_is_said_before_and_narrowed_by_an_index(client: Client) -> None:
    queue = client.queue("mail")
    await queue.put_many(NewJob("Greet", jid=f"j{n}") for n in range(30))
    await queue.put("Greet", jid="tagged", tags=["news"])
    await (await queue.pop(worker="ann"))[0].fail("no such word", group="typo")
    await queue.pop(worker="ann")

    async def total(text: str) -> int:
        return (await client.jobs.search(text, count=1)).total

    assert await total("Greet") == 31
    assert await total("tag:news") == await total("tag:news state:waiting") == 1
    assert await total("state:failed") == await total("group:typo") == 1
    assert await total("worker:ann state:running") == await total("state:running") == 1
    assert await total("jid:a,b") == 2
    assert await total("queue:nosuch -state:complete,failed") == 0
    page = await client.jobs.search("klass:Greet", count=10)
    assert (page.found, page.searched, page.total, bool(page.cursor)) == (10, 10, 31, True)
    page = await client.jobs.search("klass:Greet", count=1000, cursor=page.cursor)
    assert (page.found, page.searched, page.total, page.cursor) == (31, 31, 31, "")


async def test_completed_jobs_of_a_time_are_reached_without_reading_later_ones(
    client: Client,
) -> None:
    queue = client.queue("mail")
    await queue.put_many(NewJob("Greet", jid=f"j{n}") for n in range(100))
    for job in await queue.pop(count=100):
        await job.complete()
    page = await client.jobs.search("state:complete until:2020-01-01")
    assert (page.jids, page.searched, page.total) == ([], 0, 0)
    page = await client.jobs.search("state:complete since:2020-01-01", count=1000)
    assert (page.found, page.total) == (100, 100)


async def test_job_that_stays_is_found_once_while_others_move(client: Client) -> None:
    chance = random.Random(7)
    queue = client.queue("mail")
    staying = {f"s{n}" for n in range(60)}
    await queue.put_many(NewJob("Greet", jid=jid) for jid in staying)
    await queue.put_many(NewJob("Greet", jid=f"m{n}", priority=n % 3) for n in range(200))
    for n in range(40):
        await client.queue("fails").put("Greet", jid=f"f{n}")
        (job,) = await client.queue("fails").pop()
        await job.fail("no such word", group="typo")
    staying |= {f"f{n}" for n in range(20)}
    seen: list[str] = []
    extra = 0
    async for page in client.jobs.filter("klass:Greet", count=5):
        seen += page.jids
        for _ in range(3):
            extra += 1
            await queue.put("Greet", jid=f"x{extra}", priority=chance.choice([-1, 0, 5]))
        await client.jobs.cancel(f"m{extra % 200}", f"m{(extra * 7) % 200}")
        await client.jobs.set_priority_many([f"m{extra % 190}"], chance.random())
        if extra % 5 == 0:  # the oldest ones first: none that stays
            await client.jobs.retry(f"f{20 + extra // 5}") if extra < 90 else None
    kept = [jid for jid in seen if jid in staying]
    assert sorted(kept) == sorted(staying)


async def test_search_ends_at_a_cursor_though_found_jobs_have_left(client: Client) -> None:
    queue = client.queue("mail")
    await queue.put_many(NewJob("Greet", jid=f"j{n:03}") for n in range(100))
    first = await client.jobs.search("klass:Greet", count=30)
    seen: list[str] = []
    async for page in client.jobs.filter("klass:Greet", count=7, stop=first.cursor):
        seen += page.jids
        await client.jobs.cancel(*page.jids)
    assert seen == first.jids
    assert await queue.length() == 70


async def test_encrypted_data_is_left_out_and_counted(client: Client) -> None:
    async with Client(
        client.url, namespace=client.namespace, codec=Encryption("k" * 43 + "=")
    ) as sealed:
        await sealed.queue("mail").put("Greet", {"customer": 4711})
    await client.queue("mail").put("Greet", {"customer": 4711}, jid="plain")
    for text in ("customer:4711", "-customer:4712"):
        page = await client.jobs.search(text)
        assert (page.jids, page.unsearched) == (["plain"], 1)
    assert (await client.jobs.search("Greet")).unsearched == 0


async def test_large_data_is_left_out_and_counted(client: Client) -> None:
    mail = client.queue("mail")
    await mail.put("Greet", {"note": "x" * 66_000, "customer": 4711})
    await mail.put("Greet", {"note": "x" * 64_000, "customer": 4711}, jid="short")
    for text in ("customer:4711", "-customer:4712", "customer:4711 -note:*y*"):
        page = await client.jobs.search(text)
        assert (page.jids, page.unsearched) == (["short"], 1)
    assert (await client.jobs.search("Greet")).unsearched == 0
    page = await client.jobs.search("customer:4711 note:*x* note:x* note:*x")
    assert (page.jids, page.unsearched) == ([], 2)


async def test_portion_ends_early_where_much_data_is_scanned(client: Client) -> None:
    await client.queue("mail").put_many(
        NewJob("Greet", {"note": "x" * 10_000, "customer": 4711}) for _ in range(30)
    )
    page = await client.jobs.search("customer:4711")
    assert page.found == page.searched <= 6
    assert (await client.jobs.search("customer:4712")).searched == 30


async def test_malformed_cursor_is_refused(client: Client) -> None:
    await client.queue("mail").put("Greet")
    for cursor in ("nonsense", b64encode(b'[[1,1,1,1e400],"0"]').decode()):
        with pytest.raises(ValueError, match="is not a cursor of a search"):
            await client.jobs.search("", cursor=cursor)
    for cursor in ("x", "[1]", '["tag","a","1","b"]'):
        with pytest.raises(InvalidArgument):
            await client.internals.store.find(conditions="[]", cursor=cursor)
    for mark in ("nan", " 5 ", "0x10", "1.2.3", "", "5\\n"):
        with pytest.raises(InvalidArgument):
            await client.internals.store.find(
                conditions="[]", cursor=f'["waiting","mail","{mark}","b"]'
            )
    conditions = JobFilter.parse("jid:a,b").encode(0)
    for stage, mark in (
        ("jid", "0.5"),
        ("failed", "0.5"),
        ("waiting", "-inf"),
        ("complete", "1e9"),
    ):
        await client.internals.store.find(
            conditions=conditions if stage == "jid" else "[]",
            cursor=f'["{stage}","","{mark}",""]',
        )
    for conditions in ("x", "1", '[{"key":"tag"}]', '[{"key":"data","values":[["a"]]}]'):
        with pytest.raises(InvalidArgument):
            await client.internals.store.find(conditions=conditions)


async def test_jobs_are_tagged_and_get_a_priority_together(client: Client) -> None:
    await client.queue("mail").put_many(NewJob("Greet", jid=jid) for jid in "ab")
    assert await client.jobs.tag_many(["a", "b", "none"], "vip", "news") == 2
    assert await client.jobs.set_priority_many(["a", "b", "none"], 0) == 2
    assert await client.jobs.set_priority_many(["b"], -3) == 1
    assert [job.jid for job in await client.queue("mail").peek(count=2)] == ["b", "a"]
    assert sorted(await found(client, "tag:vip tag:news")) == ["a", "b"]
    assert await client.jobs.untag_many(["a", "none"], "vip") == 1
    assert await found(client, "tag:vip tag:news") == ["b"]
