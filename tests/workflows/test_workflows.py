"""Workflows: jobs that depend on each other, put in one step."""

from __future__ import annotations

from typing import Any

import pytest

from aioqless import Client, Job, NewJob, chain, group, in_queue, job
from aioqless.client.workflows import Chain
from tests.worker.conftest import Work


@job(klass="Add", result_ttl=60)
async def add(job: Job[Any], number: int = 0) -> int:
    return number + sum((await job.results()).values())


def new(jid: str, **options: Any) -> NewJob:
    return NewJob("Add", {}, jid=jid, **options)


async def waits_for(client: Client, *jids: str) -> dict[str, set[str]]:
    return {job.jid: set(job.dependencies) for job in await client.jobs.multiget(*jids)}


async def test_results_of_a_step_are_passed_to_the_next(client: Client, work: Work) -> None:
    flow = chain(
        add.data(number=1), group(add.data(number=10), add.data(number=20)), add.data(number=100)
    )
    put = await client.queue("mail").put_flow(flow)
    async with work(add):
        done = await client.jobs.wait(*put.last, timeout=60)  # type: ignore[arg-type, misc]
    assert await done.result() == 100 + (10 + 1) + (20 + 1)


async def test_each_step_waits_for_the_end_of_the_former(client: Client) -> None:
    flow = chain(new("a"), group(new("b"), chain(new("c"), new("d"))), new("e"))
    put = await client.queue("mail").put_flow(flow)
    assert put.jids == ("a", "b", "c", "d", "e")
    assert put.last == ("e",)
    assert await waits_for(client, *put.jids) == {
        "a": set(),
        "b": {"a"},
        "c": {"a"},
        "d": {"c"},
        "e": {"b", "d"},
    }


async def test_group_ends_when_all_its_jobs_have_ended(client: Client) -> None:
    put = await client.queue("mail").put_flow(group(new("a"), chain(new("b"), new("c"))))
    assert put.last == ("a", "c")


async def test_step_can_have_its_own_queue_and_options(client: Client) -> None:
    await client.queue("mail").put_flow(
        chain(new("a", priority=3), in_queue("slow", new("b"), tags=["x"], delay=60))
    )
    a, b = await client.jobs.multiget("a", "b")
    assert (a.queue, a.priority, b.queue, b.tags) == ("mail", 3, "slow", ["x"])


async def test_workflow_can_depend_on_existing_jobs(client: Client) -> None:
    await client.queue("mail").put("Add", jid="before")
    await client.queue("mail").put_flow(
        chain(new("a", depends=["before"]), new("b", depends=["before"]))
    )
    assert await waits_for(client, "a", "b") == {"a": {"before"}, "b": {"before", "a"}}


@pytest.mark.parametrize(
    ("flow", "why"),
    [
        (chain(new("a"), new("a")), "'a' is in this workflow twice"),
        (
            chain(new("a", depends=["b"]), new("b")),
            "'a' depends on 'b', which comes later in this workflow",
        ),
        (group(*(new(f"{number}") for number in range(1001))), r"at most 1,000 jobs \(got 1,001\)"),
        (
            chain(*(group(*(NewJob("Add") for _ in range(101))) for _ in range(2))),
            r"at most 10,000 dependencies \(got 10,201\)",
        ),
        (
            chain(new("a", if_dependency_fails="explode")),
            "if_dependency_fails must be one of hold, fail, cancel",
        ),
    ],
)
async def test_invalid_workflow_is_refused_before_a_put(
    client: Client, flow: Chain, why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        await client.queue("mail").put_flow(flow)
    assert await client.queues() == []


def test_steps_may_be_one_iterable() -> None:
    a, b = new("a"), new("b")
    assert group([a, b]) == group(each for each in (a, b)) == group(a, b)
    assert chain([a, b]) == chain(a, b)


def test_workflow_refuses_items_other_than_new_jobs() -> None:
    with pytest.raises(TypeError, match="got 'a'"):
        chain(new("a"), "a")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least one"):
        group([])
