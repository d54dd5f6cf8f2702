"""Commands that show metrics and add marks."""

from __future__ import annotations

import json
import os
import re

from aioqless import Client, Job, Settings, Worker, job
from tests.cli.conftest import Aioqless
from tests.conftest import Until


@job(klass="Greet")
def greet(job: Job) -> None: ...


async def test_workers_prints_what_each_uses(client: Client, cli: Aioqless, until: Until) -> None:
    settings = Settings(queues=["mail"], concurrency=7, version_label="v1")
    async with Worker(client, [greet], settings=settings, name="ann"):
        await until(lambda: client.metrics.workers("ann"))
        _, ann = (await cli("workers")).out.splitlines()
        first = (await cli("workers", "ann")).out.splitlines()[0]
        (shown,) = json.loads((await cli("workers", "--json")).out)
    assert re.match(r"ann +mail +0 +0 +0/7 +[\d,]+ MiB +[\d.]+ m?s +v1 ", ann)
    assert f"pid {os.getpid()}, aioqless " in first and "slots 0/7, memory " in first
    facts = shown["facts"]
    assert (facts["pid"], facts["version"], facts["slots"]) == (os.getpid(), "v1", 7)
    assert await client.metrics.workers("ann") == {}  # it has ended


async def test_stats_shows_klasses_and_compares_them_with_those_before_a_deploy(
    client: Client, cli: Aioqless
) -> None:
    assert "no deploy mark" in (await cli("stats", "--deploy")).err
    for version in ("v1", "v2"):
        await client.put("Greet", {}, queue="mail")
        settings = Settings(queues=["mail"], burst=True, version_label=version)
        await Worker(client, [greet], settings=settings).run()
    header, line = (await cli("stats", "--klass")).out.splitlines()
    assert header.split() == [
        "klass",
        "queue",
        "runs",
        "failures",
        "per",
        "min",
        "p50",
        "p95",
        "p99",
        "wait",
        "p95",
    ]
    assert re.match(r"Greet +mail +2 +0 +0\.\d ", line)
    (klass,) = json.loads((await cli("stats", "mail", "--klass", "--hours", "1", "--json")).out)
    assert (klass["klass"], klass["runs"], klass["run"]["count"]) == ("Greet", 2, 2)
    title, _, line = (await cli("stats", "--deploy")).out.splitlines()
    assert title.startswith("v2, ") and line.startswith("Greet")
    shown = json.loads((await cli("stats", "--deploy", "--json")).out)
    assert shown["version"] == "v2" and shown["klasses"][0]["before"].keys() == {
        *("runs", "failures", "retries", "rate", "run", "wait"),
    }


async def test_stats_by_klass_take_a_queue_or_a_klass(client: Client, cli: Aioqless) -> None:
    for queue in ("mail", "post"):
        await client.put("Greet", {}, queue=queue)
    settings = Settings(queues=["mail", "post"], burst=True, version_label="v1")
    await Worker(client, [greet], settings=settings).run()
    for option in ("--klass", "--deploy"):
        for name, count in (("mail", 1), ("Greet", 2)):
            shown = (await cli("stats", name, option)).out
            assert len(re.findall("^Greet ", shown, re.MULTILINE)) == count
        wrong = await cli("stats", "Greed", option)
        assert wrong.code == 1 and "it is no klass; did you mean Greet?" in wrong.err
        wrong = await cli("stats", option, "--date", "2030-01-31")
        assert wrong.code == 2 and "give --hours instead" in wrong.err
