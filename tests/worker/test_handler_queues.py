"""The queues of a worker that is given none: those that its handlers name."""

from __future__ import annotations

from typing import Any

import pytest

from aioqless import Client, Job, Settings, Worker, job
from aioqless.testing import run_jobs
from tests.worker.conftest import Lines

seen: list[str] = []


@job(klass="Letter", queue="mail")
async def letter(job: Job[Any]) -> None:
    seen.append(job.queue)


@job(klass="Star", queue="a*")
async def star(job: Job[Any]) -> None:
    seen.append(job.queue)


@job(klass="Plain")
async def plain(job: Job[Any]) -> None:
    seen.append(job.queue)


@job(klass="Daily", queue="reports", cron="@daily")
async def daily(job: Job[Any]) -> None: ...


@pytest.fixture(autouse=True)
def fresh() -> None:
    seen.clear()


async def burst(client: Client, *handlers: Any, **settings: Any) -> None:
    await Worker(client, *handlers, settings=Settings(burst=True, **settings)).run()


async def test_worker_without_queues_runs_jobs_where_its_handlers_put_them(
    client: Client, lines: Lines
) -> None:
    await client.put(letter)
    await client.put(plain)
    await burst(client, letter, plain)
    assert seen == ["default", "mail"]
    assert lines.of("worker.started", queues=("default", "mail"))
    assert not lines.of("worker.queues_skipped")


async def test_default_is_not_served_if_every_handler_names_a_queue(
    client: Client, lines: Lines
) -> None:
    await client.put(plain)
    await client.put(letter)
    await burst(client, letter, daily)
    assert lines.of("worker.started", queues=("mail", "reports"))
    assert seen == ["mail"] and await client.queue("default").length() == 1


async def test_queue_of_a_handler_with_a_star_in_its_name_is_no_pattern(client: Client) -> None:
    await client.put(star)
    await client.queue("abc").put(star)
    await burst(client, star)
    assert seen == ["a*"]


@pytest.mark.parametrize(
    ("queues", "skipped"),
    [
        (("default",), ("mail", "reports")),
        (("m*",), ("reports",)),
        (("mail", "reports"), None),
    ],
)
async def test_named_queues_that_an_explicit_list_leaves_out_are_logged_once(
    client: Client, lines: Lines, queues: tuple[str, ...], skipped: tuple[str, ...] | None
) -> None:
    await burst(client, letter, daily, plain, queues=queues)
    found = [(line["queues"], line["level"]) for line in lines.of("worker.queues_skipped")]
    assert found == ([(skipped, "info")] if skipped else [])


async def test_drain_serves_the_queues_of_handlers(client: Client, lines: Lines) -> None:
    await client.put(letter)
    await run_jobs(client, letter)
    assert seen == ["mail"] and not lines.of("worker.queues_skipped")
