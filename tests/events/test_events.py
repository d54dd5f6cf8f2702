"""Typed and filtered events for clients, across outages."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest
from redis import exceptions

from aioqless import Client
from aioqless.client.events import (
    KINDS,
    Advanced,
    AnyEvent,
    Canceled,
    Completed,
    ConfigSet,
    ConfigUnset,
    Failed,
    LockLost,
    Missed,
    Other,
    Popped,
    Progressed,
    Put,
    Stalled,
    Tracked,
    Untracked,
)
from aioqless.lua import list_commands, list_libraries, read_script
from tests.conftest import Until
from tests.server import OwnServer


@asynccontextmanager
async def collect_events(client: Client, **wanted: Any) -> AsyncIterator[list[AnyEvent]]:
    """Collect the events received until the block ends."""
    found: list[AnyEvent] = []

    async def listen(stream: Any) -> None:
        async for event in stream:
            if isinstance(event, ConfigSet) and event.option == "the end":
                return
            found.append(event)

    async with client.events(**wanted) as stream, asyncio.timeout(60):
        task = asyncio.create_task(listen(stream))
        yield found
        if wanted:
            task.cancel()
        else:
            await client.config.set("the end", 1, force=True)
        await asyncio.wait([task])


def without_time(event: AnyEvent) -> tuple[Any, ...]:
    """Return an event without its time."""
    values = dict(vars(event))
    assert abs(values.pop("when") - time.time()) < 10
    return type(event), values


async def test_each_kind_of_event_has_its_own_type(client: Client, until: Until) -> None:
    mail = client.queue("mail")
    async with collect_events(client) as found:
        await mail.put("Greet", jid="a")
        (job,) = await mail.pop(worker="ann")
        job.progress(0.5, "half")
        await until(lambda: len(found) == 2)
        await job.complete("post")
        (job,) = await client.queue("post").pop(worker="ann")
        await job.fail("no such word", group="typo")
        await client.jobs.cancel("a")
        await client.config.set("heartbeat", 30)
        await client.config.unset("heartbeat")
    assert [without_time(event) for event in found] == [
        (Put, {"jid": "a", "queue": "mail"}),
        (Progressed, {"jid": "a", "queue": "mail", "progress": 0.5, "message": "half"}),
        (Advanced, {"jid": "a", "queue": "mail", "to": "post"}),
        (
            Failed,
            {
                "jid": "a",
                "queue": "post",
                "worker": "ann",
                "group": "typo",
                "message": "no such word",
            },
        ),
        (Canceled, {"jid": "a", "queue": "post", "worker": None}),
        (ConfigSet, {"option": "heartbeat", "value": "30"}),
        (ConfigUnset, {"option": "heartbeat"}),
    ]


async def test_tracked_jobs_publish_popped_and_stalled(client: Client, until: Until) -> None:
    mail = client.queue("mail")
    await client.internals.store.config_set(option="mail-heartbeat", value="-1")
    for jid in "ab":
        await mail.put("Greet", jid=jid)
    await client.internals.store.track_track(jid="a")
    async with collect_events(client, tracked=True) as found:
        await mail.pop(2, worker="ann")
        await mail.pop(2, worker="bob")
        await client.internals.store.track_untrack(jid="a")
        await client.internals.store.track_track(jid="b")
        await client.jobs.cancel("b")
        await until(lambda: found and isinstance(found[-1], Canceled))
    kinds = [
        (type(event), event.jid)
        for event in found
        if not isinstance(event, Missed | ConfigSet | ConfigUnset)
    ]
    assert {(Popped, "a"), (Stalled, "a"), (LockLost, "a")} <= set(kinds)
    assert kinds[-3:] == [(Untracked, "a"), (Tracked, "b"), (Canceled, "b")]
    assert not any(jid == "b" for _, jid in kinds[:-2])


async def test_filter_passes_only_its_queues_jobs_and_kinds(client: Client, until: Until) -> None:
    for queue, jid in (("mail", "a"), ("post", "b")):
        await client.queue(queue).put("Greet", jid=jid)
    async with (
        collect_events(client, queue="post") as of_post,
        collect_events(client, jid=["a"]) as of_a,
        collect_events(client, kind=["completed", "failed"]) as ends,
    ):
        (a,) = await client.queue("mail").pop()
        (b,) = await client.queue("post").pop()
        await b.fail("x", group="typo")  # its message does not name the queue
        await a.complete("post")
        await until(lambda: of_a and ends and len(of_post) == 2)
    assert [without_time(event)[0] for event in of_post] == [Failed, Advanced]
    assert of_post[0].queue == "post"
    assert [type(event) for event in of_a] == [Advanced]
    assert [type(event) for event in ends] == [Failed]


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ({"kind": "complete"}, r"kind must be one of put, popped, .* \(got 'complete'\)"),
        ({"queue": ""}, "queue must not be empty"),
    ],
)
async def test_invalid_filter_is_refused_by_name(
    client: Client, wanted: dict[str, Any], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        client.events(**wanted)


async def test_malformed_messages_are_ignored(client: Client) -> None:
    async with collect_events(client) as found:
        for text in (
            "nonsense",
            "[]",
            '{"event": 7}',
            '{"event": ["put"], "jid": "x"}',
            "[" * 100_000,
            '{"event": "put"}',
            '{"event": "canceled", "jid": "x", "queue": false, "worker": false}',
            '{"event": "failed", "jid": "x", "message": {"a": 1}}',
            '{"event": "moon", "jid": "x", "phase": 3}',
            '{"event": "progress", "jid": "x", "progress": true}',
            f'{{"event": "progress", "jid": "x", "progress": 1{"0" * 400}}}',
        ):
            await client.redis.publish(f"{client.namespace}:log", text)
        await client.redis.publish(f"{client.namespace}:track", b"\xff")
    assert [type(event) for event in found] == [
        Canceled,
        Failed,
        Other,
        Progressed,
        Progressed,
        Tracked,
    ]
    assert (found[0].queue, found[1].message, found[3].progress, found[4].progress) == (
        None,
        None,
        None,
        None,
    )
    assert isinstance(found[2], Other) and (found[2].kind, found[2].jid, found[2].more) == (
        "moon",
        "x",
        {"phase": 3},
    )


async def test_outage_is_reported_with_its_duration_and_listening_continues(
    own_server: OwnServer, until: Until
) -> None:
    async with Client(own_server.url) as client, collect_events(client, kind="completed") as found:
        before = time.time()
        await client.internals.store.connection.execute("PING")
        own_server.kill()
        own_server.start()
        missed = await until(lambda: found and found[0])
        assert (
            isinstance(missed, Missed)
            and missed.since <= before + 1
            and before <= missed.until <= time.time()
            and missed.why
        )
        await client.queue("mail").put("Greet", jid="a")
        (job,) = await client.queue("mail").pop()
        await job.complete()
        await until(lambda: len(found) == 2)
        assert without_time(found[1]) == (Completed, {"jid": "a", "queue": "mail"})


async def test_slow_listener_that_was_disconnected_gets_a_missed_event(
    client: Client, until: Until
) -> None:
    async with collect_events(client, queue="mail") as found:
        await client.redis.client_kill_filter(_type="pubsub")
        await until(lambda: found)
    assert isinstance(found[0], Missed) and found[0].since <= found[0].until


async def test_listening_without_redis_raises() -> None:
    async with Client("redis://127.0.0.1:1") as client:
        with pytest.raises(exceptions.ConnectionError):
            async with client.events():
                pass


async def test_listening_ends_with_the_client(redis_url: str, namespace: str) -> None:
    async with Client(redis_url, namespace=namespace) as client:
        events = client.events()
        await events.__aenter__()

        async def all_of_them() -> list[AnyEvent]:
            return [event async for event in events]

        collect_events = asyncio.create_task(all_of_them())
        await asyncio.sleep(0)
    async with asyncio.timeout(60):
        assert await collect_events == []


async def test_leaving_the_loop_ends_the_subscription(client: Client, until: Until) -> None:
    async def subscribers() -> int:
        ((_, count),) = await client.redis.pubsub_numsub(f"{client.namespace}:log")
        return int(count)

    async with client.events() as events, aclosing(events.__aiter__()) as each:  # type: ignore[type-var]
        await client.queue("mail").put("Greet")
        async for event in each:
            assert isinstance(event, Put)
            break
    await until(lambda: _none(subscribers))


async def _none(count: Any) -> bool:
    return await count() == 0


def test_every_event_of_the_scripts_has_a_kind() -> None:
    text = "".join(map(read_script, [*list_commands(), *list_libraries()]))
    said = set(
        re.findall(
            r"""event(?: = |":)['"](\w+)|events\.publish_tracked\('(\w+)"""
            r"""|keys\.event_channel\('(\w+)""",
            text,
        )
    )
    to_a_worker = {"remote_control", "signaled"}
    names = {name for names in said for name in names if name}
    assert names - to_a_worker == set(KINDS) - {"missed"}
