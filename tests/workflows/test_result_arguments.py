"""Results of steps as arguments of later steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from aioqless import Client, Fail, Failure, Job, NewJob, chain, group, in_queue, job
from aioqless.errors import InvalidData
from tests.conftest import Until, existing_job
from tests.worker import in_processes
from tests.worker.conftest import Work

SEEN: dict[str, Any] = {}


@dataclass
class Page:
    text: str


@job(klass="Fetch", result_ttl=1)
async def fetch(job: Job[Any], url: str) -> Page:
    if url == "fails":
        raise Fail("no such page")
    return Page(url.upper())


@job(klass="Resize", result_ttl=60)
async def resize(job: Job[Any], page: Page, width: int) -> str:
    return f"{page.text} at {width}"


@job(klass="Notify")
async def notify(job: Job[Any], thumbs: list[str], page: Page | None = None) -> None:
    SEEN[job.jid] = (thumbs, page)


@job(klass="Report")
async def report(job: Job[Any], page: Page | Failure, thumbs: Sequence[str | Failure] = ()) -> None:
    SEEN[job.jid] = (page, thumbs)


async def test_results_fill_the_parameters_of_later_steps(client: Client, work: Work) -> None:
    page = fetch.data(url="a").with_options(priority=-1)
    thumbs = group(resize.data(page=page.result, width=1), resize.data(page=page.result, width=5))
    last = in_queue("post", notify.data(thumbs=thumbs.result, page=page.result))
    put = await client.put_flow(chain(page, thumbs, last), queue="mail")
    assert len(put.last) == 1
    async with work(fetch, resize, notify, queues=("mail", "post")):
        await client.jobs.wait(put.last[0], timeout=60)
    assert SEEN[put.last[0]] == (["A at 1", "A at 5"], Page("A"))
    assert await client.check() == []


async def test_result_adds_the_dependency(client: Client, work: Work) -> None:
    page = fetch.data(url="a")
    put = await client.put_flow(group(page, resize.data(page=page.result, width=1)), queue="mail")
    assert put.last == put.jids[1:]
    async with work(fetch, resize):
        assert await client.jobs.result(put.jids[1], timeout=60) == "A at 1"


async def test_process_gets_results(client: Client, work: Work) -> None:
    page = fetch.data(url="a")
    length = in_processes.length.data(page=page.result)
    put = await client.put_flow(chain(page, length), queue="mail")
    async with work(fetch, in_processes.length):
        assert await client.jobs.result(put.last[0], timeout=60) == 1


async def test_result_is_kept_until_all_that_take_it_have_ended(client: Client, work: Work) -> None:
    page = fetch.data(url="a")
    thumb = resize.data(page=page.result, width=1)
    thumbs = [in_queue(queue, thumb) for queue in ("post", "late", "gone")]
    put = await client.put_flow(chain(page, group(*thumbs)), queue="mail")
    key = f"{client.namespace}:x:result:{put.jids[0]}"
    async with work(fetch):
        await client.jobs.wait(put.jids[0], timeout=60)
    assert await client.redis.ttl(key) == -1
    async with work(resize, queues=("post",)):
        await client.jobs.wait(put.jids[1], timeout=60)
    assert await client.redis.ttl(key) == -1
    await client.jobs.cancel(put.jids[3])
    assert await client.check() == []
    async with work(resize, queues=("late",)):
        assert await client.jobs.result(put.jids[2], timeout=60) == "A at 1"
    assert await client.redis.ttl(key) <= 1
    assert not await client.redis.exists(f"{client.namespace}:x:takers:{put.jids[0]}")


async def test_step_that_runs_after_failures_gets_them(client: Client, work: Work) -> None:
    good, bad = fetch.data(url="a"), fetch.data(url="fails")
    thumbs = group(resize.data(page=good.result, width=1), resize.data(page=bad.result, width=1))
    end = in_queue(
        "mail", report.data(page=bad.result, thumbs=thumbs.result), if_dependency_fails="run"
    )
    put = await client.put_flow(group(good, bad, thumbs, end), queue="mail")
    async with work(fetch, resize, report):
        await client.jobs.wait(put.last[0], timeout=60)
    page, (first, second) = SEEN[put.last[0]]
    assert (page.message, first) == ("no such page", "A at 1")
    assert (second.jid, second.message) == (put.jids[1], "no such page")


async def test_canceled_step_is_a_failure_for_one_that_runs_nevertheless(
    client: Client, work: Work
) -> None:
    page = fetch.data(url="a")
    end = report.data(page=page.result).with_options(if_dependency_fails="run")
    put = await client.put_flow(chain(in_queue("gone", page), end), queue="mail")
    waiting = await existing_job(client, put.last[0])
    await waiting.undepend(put.jids[0])
    await client.jobs.cancel(put.jids[0])
    async with work(report):
        await client.jobs.wait(put.last[0], timeout=60)
    failure, _ = SEEN[put.last[0]]
    assert (failure.jid, failure.group) == (put.jids[0], "canceled")


async def test_annotation_without_a_failure_is_refused_for_a_step_that_runs_after_failures(
    client: Client,
) -> None:
    page = fetch.data(url="a")
    thumb = resize.data(page=page.result, width=1).with_options(if_dependency_fails="run")
    with pytest.raises(InvalidData, match=r"Resize runs if .* page: annotate it as `T | Failure`"):
        await client.put_flow(chain(page, thumb))
    report_it = report.data(page=page.result)
    await client.put_flow(chain(page, report_it), if_dependency_fails="run")
    with pytest.raises(InvalidData, match="annotate it"):
        await client.put_flow(
            chain(page, resize.data(page=page.result, width=1)), if_dependency_fails="run"
        )


async def test_other_arguments_are_checked_at_put(client: Client) -> None:
    page = fetch.data(url="a")
    with pytest.raises(InvalidData, match=r"Expected `int`, got `str` - at `\$.width`"):
        await client.put_flow(chain(page, NewJob(resize, {"page": page.result, "width": "x"})))


async def test_result_of_another_workflow_or_of_no_workflow_is_refused(client: Client) -> None:
    page, other = fetch.data(url="a"), fetch.data(url="a")
    thumb = resize.data(page=page.result, width=1)
    with pytest.raises(ValueError, match="is taken, which is not in this workflow"):
        await client.put_flow(chain(other, thumb))
    with pytest.raises(ValueError, match="is taken, which is in this workflow twice"):
        await client.put_flow(chain(page, page, thumb))
    with pytest.raises(ValueError, match="comes later in this workflow"):
        await client.put_flow(chain(thumb, page))
    with pytest.raises(InvalidData, match="StepResult"):
        await client.put(thumb)


async def test_result_that_is_not_kept_is_refused(client: Client) -> None:
    first = notify.data(thumbs=[])
    with pytest.raises(ValueError, match=r"keeps none: declare @job\(result_ttl="):
        await client.put_flow(chain(first, resize.data(page=first.result, width=1)))  # type: ignore[arg-type]
    first_flow: Any = group(chain(first))
    with pytest.raises(TypeError, match="only a group of jobs"):
        first_flow.result  # noqa: B018


async def test_data_that_looks_like_a_result_is_left_alone(client: Client, work: Work) -> None:
    @job(klass="Echo", result_ttl=60)
    async def echo(job: Job[Any], value: Any) -> Any:
        return value

    page = await client.put(fetch.data(url="a"), queue="mail")
    value = {"$result": page}
    jid = await client.put(echo.data(value=value), queue="mail", depends=[page])
    async with work(echo, fetch):
        assert await jid.result(timeout=60) == value


async def test_result_that_is_gone_fails_the_step(client: Client, work: Work, until: Until) -> None:
    page = fetch.data(url="a")
    flow = chain(page, in_queue("post", resize.data(page=page.result, width=1)))
    put = await client.put_flow(flow, queue="mail")
    async with work(fetch):
        await client.jobs.wait(put.jids[0], timeout=60)
    await client.redis.delete(f"{client.namespace}:x:result:{put.jids[0]}")
    async with work(resize, queues=("post",)):
        failed = await client.jobs.wait(put.last[0], timeout=60)
    assert failed.failure and failed.failure.group == "post-InvalidData"
    assert "which it takes, is not there" in failed.failure.message
