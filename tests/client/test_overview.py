"""The overview of a namespace: what it says, and what it costs Redis."""

from __future__ import annotations

import time

import pytest

from aioqless import Client, NewJob
from aioqless.client import overview, read_overview
from aioqless.client.overview import OverviewReader, Rates, rates_between
from aioqless.client.queue_statistics import QueueOverview
from tests.reported_runs import report_runs


async def test_overview_has_queues_lags_reasons_failures_and_workers(
    client: Client, redis_url: str
) -> None:
    begun = time.time() - 100
    async with Client(redis_url, namespace=client.namespace, clock=lambda: begun) as earlier:
        await earlier.queue("mail").put("Greet")
        await earlier.queue("held").put("Greet")
    await client.queue("held").pause()
    await client.queue("later").put("Greet", delay=60)
    await client.queue("bad").put("Greet")
    (job,) = await client.queue("bad").pop(worker="ann")
    await job.fail("no", group="bad-ValueError")
    await report_runs(client, time.time(), worker="ben", queues=["bad"])
    found = await read_overview(client)
    assert {each.name: each.waiting for each in found.queues} == {
        "mail": 1, "held": 1, "later": 0, "bad": 0
    }  # fmt: skip
    assert found.lags["mail"] >= 100 and found.lags["held"] >= 100
    assert found.lags["later"] == found.lags["bad"] == 0
    assert {each.queue: each.reason for each in found.coverage.delays.values()} == {
        "mail": "no_worker", "held": "paused"
    }  # fmt: skip
    assert found.failed == {"bad-ValueError": 1} and not found.lost
    assert {each.name: each.alive for each in found.workers} == {"ann": None, "ben": True}
    assert found.sum("waiting") == 2 and found.server.version and abs(found.when - time.time()) < 60


async def test_rates_are_those_between_two_overviews(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, mail = OverviewReader(client), client.queue("mail")
    assert reader.rates() == []
    await mail.put("Greet")
    first = await reader.read()
    await client.put_many([NewJob("Greet") for _ in range(4)], queue="mail")
    for job in await mail.pop(3):
        await job.complete()
    for job in await mail.pop(1):
        await job.fail("no", group="no")
    assert await reader.read(max_age=3600) is first and reader.rates() == []
    second = await reader.read()
    ((when, completed, failed),) = reader.rates()
    assert when == second.when > first.when and completed == pytest.approx(3 * failed)
    assert reader.rates("mail") == reader.rates()
    monkeypatch.setattr(overview, "RATES_EXPIRE", 0)
    await reader.read()
    assert reader.rates() == reader.rates("mail") == []


def test_rates_count_a_new_queue_and_a_new_day_from_0() -> None:
    before = [QueueOverview(name="a", completed=5, failures=9)]
    after = [QueueOverview(name="a", completed=9, failures=1), QueueOverview(name="b", completed=2)]
    assert rates_between(before, after, 7.0, 2.0) == {
        "": Rates(7.0, 3.0, 0.5), "a": Rates(7.0, 2.0, 0.5), "b": Rates(7.0, 1.0, 0.0)
    }  # fmt: skip
