"""Requirements of other qless clients on the same Redis."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import pytest

from aioqless import Client, Job
from aioqless.client import worker_name
from tests.interop.peer import at

Step: TypeAlias = Callable[[Client], Awaitable[object]]
NEEDED = {
    "jid",
    "klass",
    "state",
    "queue",
    "priority",
    "retries",
    "remaining",
    "data",
    "tags",
    "time",
}


async def popped(client: Client) -> Job[Any]:
    (job,) = await client.queue("mail").pop()
    return job


async def _moved(client: Client) -> None:
    (record,) = await client.jobs.multiget((await popped(client)).jid)
    await record.move("other")


async def _completed(client: Client) -> None:
    await (await popped(client)).complete()


async def _advanced(client: Client) -> None:
    await (await popped(client)).complete("other", delay=5)


async def _failed(client: Client) -> None:
    await (await popped(client)).fail("why", group="broken")


async def _unfailed(client: Client) -> None:
    await _failed(client)
    await client.queue("mail").unfail("broken")


async def _retried(client: Client) -> None:
    await (await popped(client)).retry(delay=10)


async def _exhausted(client: Client) -> None:
    for _ in range(3):
        await (await popped(client)).retry()


async def _released(client: Client) -> None:
    await (await popped(client)).release()


async def _timed_out(client: Client) -> None:
    await client.jobs.unlock((await popped(client)).jid)


async def _kept(client: Client) -> None:
    job = await popped(client)
    job.data["more"] = []
    await job.heartbeat()


STEPS: list[Step] = [
    _moved,
    _completed,
    _advanced,
    _failed,
    _unfailed,
    _retried,
    _exhausted,
    _released,
    _timed_out,
    _kept,
]


@pytest.mark.parametrize("step", STEPS)
async def test_job_always_has_the_fields_that_qless_py_reads(
    ours: Client, peer: Any, step: Step
) -> None:
    """Rules 2 and 4: `failure` is not empty, `history` has puts at most.

    A missing `worker` is read as the empty text, a missing `expires` as 0.
    """
    await ours.queue("mail").put("Greet", {"n": 1}, jid="a", retries=2)
    await step(ours)
    fields: dict[str, str] = peer.redis.hgetall("ql:j:a")
    assert fields.keys() >= NEEDED and fields.get("failure") != ""
    assert all(stage.keys() == {"q", "put"} for stage in json.loads(fields["history"]))
    (
        float(fields["remaining"]),
        float(fields["time"]),
        json.loads(fields["tags"]),
        json.loads(fields["data"]),
    )
    read = peer.jobs["a"]
    assert (read.jid, read.worker_name, read.expires_at) == (
        "a",
        fields.get("worker", ""),
        float(fields.get("expires") or 0),
    )


@pytest.mark.parametrize("step", STEPS)
async def test_each_jid_in_a_queue_has_a_job(ours: Client, peer: Any, step: Step) -> None:
    """Rule 3: the pop of qless-py fails on a jid without a job."""
    await ours.queue("mail").put("Greet", {}, jid="a", retries=2)
    await step(ours)
    await ours.jobs.cancel("a")
    left = [jid for key in peer.redis.keys("ql:q:*") for jid in peer.redis.zrange(key, 0, -1)]
    assert [jid for jid in left if not peer.redis.exists(f"ql:j:{jid}")] == []
    assert peer.queues["mail"].pop() is None and peer.queues["other"].pop() is None


async def test_score_of_a_waiting_job_is_that_of_qless_py(ours: Client, peer: Any) -> None:
    """Rule 1: the priority minus a ten-billionth of the time, highest first."""
    before = time.time()
    await ours.queue("mail").put("Greet", jid="a", priority=-3)
    score = peer.redis.zscore("ql:q:mail-work", "a")
    assert 3 - time.time() / 1e10 <= score <= 3 - before / 1e10


async def test_history_events_are_those_of_qless_py(ours: Client, peer: Any) -> None:
    """Rule 1: `history` is a list of `[time, event, fields]`."""
    for jid, put in (("ours", ours.queue("mail").put), ("theirs", None)):
        if put:
            await put("Greet", jid=jid)
            await (await popped(ours)).complete()
        else:
            peer.queues["mail"].put("Greet", {}, jid=jid)
            peer.queues["mail"].pop().complete()
    shapes = [
        [
            (type(event[0]), event[1], sorted(event[2]) if len(event) > 2 else [])
            for event in map(json.loads, items)
        ]
        for items in (peer.redis.lrange(f"ql:j:{jid}-history", 0, -1) for jid in ("ours", "theirs"))
    ]
    assert shapes[0] == shapes[1]


async def test_put_of_a_waiting_job_is_read_and_kept_by_qless_py(ours: Client, peer: Any) -> None:
    for jid in ("a", "b", "c"):
        await ours.queue("mail").put("Greet", jid=jid)
    (put,) = peer.jobs["a"].history
    assert (put["what"], put["q"]) == ("put", "mail")
    assert time.time() - put["when"] < 60
    assert peer.queues["mail"].pop().jid == "a"
    assert [job.jid for job in await ours.queue("mail").pop(2)] == ["b", "c"]
    for jid in ("a", "b", "c"):
        record = await ours.jobs.get(jid)
        assert record and [event["what"] for event in record.events] == ["put", "popped"]
        assert [event["what"] for event in peer.jobs[jid].history] == ["put", "popped"]


async def test_published_messages_are_those_of_qless_py(ours: Client, peer: Any) -> None:
    """Rule 5: a listener of qless-py cannot distinguish our messages."""
    heard = peer.redis.pubsub(ignore_subscribe_messages=True)
    channels = "ql:log", "ql:completed", "ql:failed", "ql:popped"
    heard.subscribe(*channels)
    for _ in channels:
        heard.get_message(timeout=60)

    def published() -> list[tuple[str, Any]]:
        messages = []
        peer.redis.publish("ql:log", "end")
        while (message := heard.get_message(timeout=60))["data"] != "end":
            data = message["data"]
            messages.append(
                (message["channel"], sorted(json.loads(data)) if data.startswith("{") else "jid")
            )
        return messages

    await ours.queue("mail").put("Greet", jid="a")
    peer.jobs["a"].track()
    published()
    await (await popped(ours)).complete()
    by_us = published()
    peer.queues["mail"].put("Greet", {}, jid="a")
    published()
    peer.queues["mail"].pop().complete()
    assert by_us == published()
    heard.close()


async def test_client_with_a_fast_clock_takes_locks_early_and_the_first_holder_is_refused(
    ours: Client, peer: Any
) -> None:
    """Rule 6: a worker that has lost its lock stores nothing."""
    await ours.queue("mail").put("Greet", jid="a")
    mine = await popped(ours)
    at(peer, 65, "pop", "mail", "peer", 1)  # starts its grace period of 10 s
    assert '"a"' in at(peer, 80, "pop", "mail", "peer", 1)
    with pytest.raises(Exception, match="lock"):
        await mine.complete()
    assert peer.jobs["a"].worker_name == "peer"


def test_worker_names_differ_from_those_of_qless_py() -> None:
    """Rule 8: qless-py's names are the host name, or the host name and a number."""
    assert len({worker_name() for _ in range(100)}) == 100 and worker_name() != socket.gethostname()
