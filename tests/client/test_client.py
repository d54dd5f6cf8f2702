"""The client itself: its options, workers, configuration and recurring jobs."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from aioqless import AioqlessError, Client, InvalidData
from aioqless.client.workers import WorkerCounts, WorkerJobs
from aioqless.errors import InvalidArgument
from aioqless.store import Call, ScriptStore

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


# Recurring jobs


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
