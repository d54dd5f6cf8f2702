"""The client itself: workers, configuration, listeners, recurring jobs and namespaces."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from typing import Any

import pytest

from aioqless import AioqlessError, Client, InvalidData, Job, job
from aioqless.client.events import Stream
from aioqless.client.workers import WorkerCounts, WorkerJobs
from aioqless.errors import InvalidArgument
from aioqless.store import Call, ScriptStore
from tests.conftest import Until


@job(klass="Digest", retries=2)
async def digest(job: Job[Any], day: str) -> None: ...


# The client


async def test_unconnected_client_raises_and_says_how_to_connect(client: Client) -> None:
    closed = "was closed at the end of its block"
    for unconnected, why in ((Client(client.url), "isn't connected"), (await left(client), closed)):
        for door in ("redis", "internals", "jobs", "recurring", "workers", "config"):
            with pytest.raises(
                RuntimeError,
                match=rf"the client {why}: use it within `async with Client\(\.\.\.\) as client:`",
            ):
                getattr(unconnected, door)
        with pytest.raises(RuntimeError):
            unconnected.queue("mail")


async def left(client: Client) -> Client:
    async with Client(client.url, namespace=client.namespace) as another:
        await another.queue("mail").length()
    return another


async def test_client_can_be_entered_again(client: Client) -> None:
    another = await left(client)
    async with another:
        assert await another.queue("mail").length() == 0


def test_client_names_are_unique(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIOQLESS_URL", raising=False)
    names = {Client().name for _ in range(10)}
    assert len(names) == 10 and all(re.fullmatch(r".+-\d+-[0-9a-f]{6}", name) for name in names)


def test_url_comes_from_the_argument_or_else_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://second")
    assert Client().url == "redis://second"
    monkeypatch.setenv("AIOQLESS_URL", "redis://first")
    assert Client().url == "redis://first"
    assert Client("redis://given").url == "redis://given"


def test_repr_hides_the_password() -> None:
    assert Client("redis://user:secret@host:1/2").endpoint == {"url": "redis://host:1/2"}


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        ({"name": ""}, ValueError),
        ({"name": "a\nb"}, ValueError),
        ({"max_data": 0}, ValueError),
        ({"max_data": "1"}, TypeError),
        ({"timeout": 0}, ValueError),
        ({"timeout": float("inf")}, ValueError),
        ({"namespace": ""}, ValueError),
        ({"namespace": "a:b"}, ValueError),
    ],
)
async def test_invalid_client_arguments_are_refused(
    client: Client, wrong: dict[str, Any], kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        async with Client(client.url, **wrong):
            pass


async def test_connections_have_the_name_of_the_client(client: Client) -> None:
    async with Client(client.url, name="billing app") as named:
        await named.queue("mail").length()
        assert "billing_app" in [each["name"] for each in await client.redis.client_list()]


async def test_damage_is_found_and_repaired(client: Client) -> None:
    await client.queue("mail").put("Greet", jid="a")
    assert await client.check() == []
    await client.redis.zrem(f"{client.namespace}:q:mail-work", "a")
    (found,) = await client.check()
    assert (found.problem, found.about["jid"]) == ("nowhere", "a")
    assert await client.check(resolve=True) and await client.check() == []
    assert await client.queue("mail").jids("waiting") == ["a"]


# Namespaces


async def test_namespaces_are_isolated(client: Client) -> None:
    async with (
        Client(client.url, namespace=f"{{{client.namespace}}}") as other,
        other.events() as events,
    ):
        await client.queue("mail").put("Greet", jid="a", tags=["x"])
        (running,) = await client.queue("mail").pop(worker="w")
        await running.fail("x", group="typo")
        await client.jobs.track("a")
        await client.queue("mail").recur("Greet", every=5, jid="often")
        await client.queue("mail").pause()
        await client.config.set("heartbeat", 7)
        assert (
            await other.queues() == []
            and await other.workers.counts() == []
            and await other.jobs.failed_counts() == {}
        )
        assert await other.jobs.get("a") is None and await other.recurring.get("often") is None
        assert await other.jobs.tagged_jids("x") == (0, []) and await other.jobs.tracked() == (
            [],
            [],
        )
        assert (
            await other.config.get("heartbeat") == 60
            and not (await other.queue("mail").counts()).paused
        )
        await other.queue("mail").put("Other", jid="a")
        assert await gathered(events, 1) == [("put", "a")]
        (mine,) = await other.queue("mail").pop(worker="w")
        assert mine.klass == "Other" and mine.fence == 1
        await other.jobs.cancel("a")
        found = await client.jobs.get("a")
        assert found and found.klass == "Greet"


# Workers


async def test_worker_counts_show_held_jobs(client: Client) -> None:
    for _ in range(3):
        await client.queue("mail").put("Greet")
    (first,) = await client.queue("mail").pop(worker="w1")
    await client.queue("mail").pop(2, worker="w2")
    await client.redis.zadd(
        f"{client.namespace}:w:w2:jobs", {(await client.workers.jobs("w2")).jobs[0]: 1}
    )
    counts = await client.workers.counts()
    assert counts == [
        WorkerCounts(name="w2", jobs=1, stalled=1, seen=counts[0].seen),
        WorkerCounts(name="w1", jobs=1, stalled=0, seen=counts[1].seen),
    ]
    assert counts[0].seen >= counts[1].seen > 0
    assert await client.workers.jobs("w1") == WorkerJobs(jobs=[first.jid], stalled=[])
    assert await client.workers.jobs("nobody") == WorkerJobs(jobs=[], stalled=[])


async def test_worker_can_be_deregistered(client: Client) -> None:
    for worker in ("w1", "w2", "w3"):
        await client.queue("mail").pop(worker=worker)
    await client.workers.deregister("w1", "w3", "nobody")
    assert [each.name for each in await client.workers.counts()] == ["w2"]
    with pytest.raises(InvalidArgument, match="name at least one worker"):
        await client.workers.deregister()


# Configuration


async def test_config_options_have_defaults_and_can_be_set(client: Client) -> None:
    assert await client.config.get("heartbeat") == 60
    assert await client.config.get("unheard-of") is None
    await client.config.set("heartbeat", 30)
    await client.config.set("motto", "slow and steady", force=True)
    await client.config.set("mail-rate-limit", (100, timedelta(minutes=1)))
    assert await client.config.get("mail-rate-limit") == "100/60"
    assert (await client.config.get("heartbeat"), await client.config.get("motto")) == (
        "30",
        "slow and steady",
    )
    everything = await client.config.all()
    assert (everything["heartbeat"], everything["motto"], everything["grace-period"]) == (
        "30",
        "slow and steady",
        10,
    )
    await client.config.unset("heartbeat")
    assert await client.config.get("heartbeat") == 60


@pytest.mark.parametrize(
    ("option", "value", "kind"),
    [
        ("heartbeat", "soon", InvalidArgument),
        ("", "1", ValueError),
        ("a\nb", "1", ValueError),
        ("heartbeat", True, TypeError),
        ("heartbeat", 0, ValueError),
        ("mail-heartbeat", "-5", ValueError),
        ("heartbeat-mail", -0.5, ValueError),
        ("grace-period", -1, ValueError),
        ("mail-max-concurrency", "-1", ValueError),
        ("mail-max-length", -4, ValueError),
        ("max-lost", -1, ValueError),
    ],
)
async def test_invalid_config_values_are_refused(
    client: Client, option: str, value: Any, kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        await client.config.set(option, value)


@pytest.mark.parametrize(
    ("option", "like"),
    [
        ("mail-max-concurency", "did you mean 'mail-max-concurrency'"),
        ("motto", "no command reads the option 'motto'"),
    ],
)
async def test_unknown_config_option_is_refused_unless_forced(
    client: Client, option: str, like: str
) -> None:
    with pytest.raises(ValueError, match=like):
        await client.config.set(option, 3)
    assert option not in await client.config.all()
    await client.config.set(option, 3, force=True)
    assert await client.config.get(option) == "3"
    await client.config.unset(option)
    assert await client.config.get(option) is None


@pytest.mark.parametrize(
    "option",
    [
        "max-job-history",
        "mail-max-concurrency",
        "heartbeat-mail",
        "histogram-history",
        "max-pop-retry",
    ],
)
async def test_config_options_of_other_qless_clients_need_no_force(
    client: Client, option: str
) -> None:
    await client.config.set(option, 3)
    assert await client.config.get(option) == "3"


@pytest.mark.parametrize(
    ("given", "variable", "used"),
    [(None, None, "ql"), (None, "mine", "mine"), ("given", "mine", "given"), (None, "", "ql")],
)
def test_namespace_comes_from_the_argument_or_else_the_environment(
    monkeypatch: pytest.MonkeyPatch, given: str | None, variable: str | None, used: str
) -> None:
    monkeypatch.delenv("AIOQLESS_NAMESPACE", raising=False)
    if variable is not None:
        monkeypatch.setenv("AIOQLESS_NAMESPACE", variable)
    assert Client("redis://localhost", namespace=given).namespace == used


# Events


async def gathered(events: Stream, count: int) -> list[tuple[str, str | None]]:
    """Return the kinds and the jids of the next events."""
    received = aiter(events)
    async with asyncio.timeout(60):
        found = [await anext(received) for _ in range(count)]
    return [(event.kind, getattr(event, "jid", None)) for event in found]


async def test_calls_work_beside_many_event_listeners(client: Client, until: Until) -> None:
    async def listen() -> tuple[str, str | None]:
        async with client.events() as events:
            return (await gathered(events, 1))[0]

    listening = [asyncio.create_task(listen()) for _ in range(40)]

    async def all_listen() -> bool:
        return (
            dict(await client.redis.pubsub_numsub(f"{client.namespace}:log"))[
                f"{client.namespace}:log".encode()
            ]
            == 40
        )

    await until(all_listen)
    await client.queue("mail").put("Greet", jid="a")
    assert await asyncio.gather(*listening) == [("put", "a")] * 40


# Recurring jobs


async def test_recurring_job_puts_instances(client: Client) -> None:
    every = await client.queue("mail").recur(
        digest, {"day": "Monday"}, every=3600, jid="digest", priority=-2, tags=["x"]
    )
    assert (every.jid, every.klass, every.queue, every.interval, every.data) == (
        "digest",
        "Digest",
        "mail",
        3600,
        {"day": "Monday"},
    )
    assert (
        every.priority,
        every.tags,
        every.retries,
        every.count,
        every.backlog,
        every.coalesce,
    ) == (-2, ["x"], 2, 0, 0, True)
    (instance,) = await client.queue("mail").pop(5)
    assert (instance.jid, instance.spawned_from, instance.klass, instance.data) == (
        "digest-1",
        "digest",
        "Digest",
        {"day": "Monday"},
    )
    assert (instance.priority, instance.tags, instance.retries) == (-2, ["x"], 2)
    before = every.next
    await every.refresh()
    assert every.count == 1 and every.next and before and every.next > before
    assert repr(every) == "<RecurringJob digest Digest every 3600 s into 'mail'>"


async def test_recurring_job_update_is_atomic(client: Client) -> None:
    every = await client.queue("mail").recur("Digest", 1, every=60, offset=600, jid="r")
    await every.update(
        priority=3,
        retries=1,
        every=120,
        data={"n": [1.0]},
        klass="Weekly",
        queue="billing",
        backlog=4,
    )
    assert (every.priority, every.retries, every.interval, every.data, every.klass, every.queue,
        every.backlog, every.coalesce) == (
        3, 1, 120, {"n": [1.0]}, "Weekly", "billing", 4, False,
    )  # fmt: skip
    with pytest.raises(ValueError):
        await every.update(priority=9, every=0)
    with pytest.raises(TypeError, match=r"update has no option 'colour'; it has .*priority, "):
        await every.update(priority=9, colour="red")  # type: ignore[call-arg]  # on purpose
    with pytest.raises(InvalidData):
        await every.update(data=float("nan"))
    assert (await every.refresh()).priority == 3


async def test_recurring_job_that_is_deleted_while_it_is_created_raises(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = client.queue("mail")
    send = ScriptStore.send

    async def gone(store: ScriptStore, call: Call) -> Any:
        return None if call.argv[0] == b"get" else await send(store, call)

    monkeypatch.setattr(ScriptStore, "send", gone)
    with pytest.raises(
        AioqlessError, match="recurring job often was canceled while it was being read"
    ):
        await queue.recur("Digest", every=60, jid="often")
