"""Write a snapshot of this version's data in Redis: `python -m tests.upgrades.snapshot`.

Run it before each release. A snapshot is what the code of its time stored: that of a released
version is never written again.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

import aioqless
from aioqless import Client, Job, Key, NewJob, bulk_job, chain
from aioqless.client.archive import Archive
from aioqless.contrib.dashboard.generated_commands import DashboardCommands
from aioqless.contrib.durable.generated_commands import DurableCommands
from aioqless.contrib.encryption import Encryption
from aioqless.contrib.foreign_queues.generated_commands import ForeignQueuesCommands
from aioqless.contrib.http.generated_commands import HttpCommands
from aioqless.contrib.human_tasks import TaskQueue
from aioqless.contrib.metrics.generated_commands import MetricsCommands
from aioqless.contrib.metrics.worker_metrics import Series
from aioqless.contrib.output.generated_commands import OutputCommands
from aioqless.testing import server

FOLDER = Path(__file__).parent / "left"
THEN = 1_700_000_000.0  # time of all puts
ENCRYPTED_WITH = "tmjp8ECUvBV7M5MkoNOTl9xiuwKqeV-v0kFoC2E0y3o="


async def put_everything(client: Client) -> None:
    """Put a job in each state and with each option, by a client with a fixed clock."""
    mail = client.queue("mail")
    await mail.put(
        "Greet",
        {"n": [], "big": 12345678901234567},
        jid="waiting",
        priority=-3,
        tags=["red", "blue"],
        retries=2,
    )
    await mail.put("Greet", jid="delayed", delay=60)
    await mail.put("Greet", jid="dependent", depends=["waiting"], if_dependency_fails="cancel")
    await mail.put("Greet", {"user": 7}, jid="alone", unique=Key("user"), unique_for=1e9)
    await mail.put(
        "Greet",
        {"user": 7},
        jid="few",
        limit_key=Key("user"),
        max_concurrency=1,
        rate_limit=(1, 3600),
    )
    await mail.put("Greet", jid="late", expires_in=1e10, context={"trace": "abc"})
    await mail.put_flow(chain(NewJob("Greet", jid="flow-1"), NewJob("Greet", jid="flow-2")))
    await mail.recur("Greet", {"of": "interval"}, every=3600, jid="interval")
    await mail.recur("Greet", {"of": "cron"}, cron="0 * * * *", jid="cron")
    await mail.recur("Greet", jid="paused", every=3600)
    recurring = await client.recurring.get("paused")
    assert recurring is not None
    await recurring.pause()
    for jid, end in (
        ("completed", "complete"),
        ("failed", "fail"),
        ("retried", "retry"),
        ("exhausted", "retry"),
        ("running", "keep"),
    ):
        await client.queue(jid).put(
            "Greet", {"n": 1}, jid=jid, retries=0 if jid == "exhausted" else 3
        )
        (job,) = await client.queue(jid).pop(worker=f"worker-{jid}")
        match end:
            case "complete":
                job.data["done"] = True
                await job.complete()
            case "fail":
                await job.fail("why", group="broken")
            case "retry":
                await job.retry(delay=30)
    await client.jobs.track("waiting", "watched")
    tracked = await client.jobs.get("waiting")
    assert tracked is not None
    await tracked.log("noted", by="somebody")
    await client.queue("review").put("Judge", jid="reserved")
    await TaskQueue(client, "review").reserve("ann", limit=600)
    await client.config.set("mail-heartbeat", 30)
    await client.queue("closed").put("Greet", jid="in-a-paused-queue")
    await client.queue("closed").pause()
    await put_relations(client)
    await put_reservations(client)
    await put_together(client)
    await put_archive(client)
    await put_extensions(client)


async def put_relations(client: Client) -> None:
    """Put groups, workflows and other relations of jobs."""
    shared = client.queue("shared")
    await shared.put_many(
        NewJob("Greet", jid=jid, limit_key=Key("shared"), max_concurrency=1, rate_limit=(9, 3600))
        for jid in ("holding", "held-back")
    )
    await shared.pop(2, worker="worker-shared")
    await client.queue("imports").put_many(
        NewJob("Greet", jid=jid, fair_by=Key("customer=7")) for jid in ("in-turn", "next-in-turn")
    )
    page = NewJob(fetch, jid="taken-from")
    await client.put_flow(chain(page, NewJob("Greet", {"n": page.result}, jid="taker")))
    results = client.queue("results")
    await results.put("Greet", jid="with-a-result")
    (job,) = await results.pop(worker="worker-results")
    await client.internals.store.heartbeat(
        jid=job.jid, worker="worker-results", now=THEN, progress=0.5, message="half"
    )
    await client.internals.store.complete(
        jid=job.jid,
        worker="worker-results",
        queue="results",
        now=THEN,
        result=f"{10**9} [1]",
    )
    await put_failures(client)
    await client.config.set("aged-failed-history", 10**9)
    await client.queue("aged").put("Greet", jid="aged")
    (job,) = await client.queue("aged").pop(worker="worker-aged")
    await job.fail("why", group="old")


async def put_failures(client: Client) -> None:
    """Put jobs that react to failures, and let some fail."""
    await client.internals.store.on_failure_declare(
        klass="Charge", job='{"queue":"alerts","klass":"Alert","data":"{}"}', now=THEN
    )
    charges = client.queue("charges")
    await charges.put(NewJob("Greet", jid="charge").on_failure(NewJob("Greet")))
    await charges.put("Greet", jid="sum", depends=["charge"], if_dependency_fails="run")
    await charges.put("Greet", jid="ship")
    await charges.put("Greet", jid="bill", depends=["ship"])
    await charges.put("Greet", jid="report", depends=["bill"], if_dependency_fails="run")
    for job in await charges.pop(2, worker="worker-charges"):
        await job.fail("why", group="declined")
    await client.internals.store.on_failure_sweep(now=THEN)


async def put_reservations(client: Client) -> None:
    await client.queue("desk").put_many(
        NewJob("Judge", jid=jid) for jid in ("skipped", "handed-over")
    )
    desk = TaskQueue(client, "desk")
    for end in ("skip", "hand over"):
        reserved = await desk.reserve("ann", limit=600)
        assert reserved is not None
        await (reserved.skip() if end == "skip" else reserved.hand_over("bob"))


async def put_archive(client: Client) -> None:
    await client.config.set("archive", "on")
    archived = client.queue("archived")
    await archived.put_many(
        NewJob("Greet", jid=jid) for jid in ("archived", "archived-failed", "archived-retried")
    )
    (completed, failed, retried) = await archived.pop(3, worker="worker-archived")
    await completed.complete()
    await failed.fail("why", group="broken")
    await retried.retry()
    archive = Archive(client.internals.store)
    first = (await archive.state()).first
    assert first is not None
    await archive.trim(first, "lake")


async def put_extensions(client: Client) -> None:
    """Write encrypted data, a worker's name, jobs of Sidekiq's clients, and dashboard actions."""
    async with Client(
        client.url, namespace=client.namespace, clock=lambda: THEN, codec=Encryption(ENCRYPTED_WITH)
    ) as encrypting:
        await encrypting.queue("encrypted").put("Greet", {"card": 1}, jid="encrypted")
    await client.internals.store.name_lease_claim(worker="stable", now=THEN, process='{"id": "1"}')
    await DashboardCommands(client.internals.store).audit_log_add(
        who="ann", act="cancel", about='{"jid": "a"}', outcome="done"
    )
    await DashboardCommands(client.internals.store).audit_log_login(
        who="ann", act="login", about='{"address": "::1"}', outcome="done"
    )
    await client.internals.store.declare_begin(id="1")
    await MetricsCommands(client.internals.store).metrics_report(
        worker="counting", report="1", now=THEN, facts='{"host": "shop"}', memory=1 << 20, busy=1,
        version="v1", batch=[{"queue": "mail", "klass": "Greet", "values": Series().encode()}],
    )  # fmt: skip
    await put_durable(client)
    await HttpCommands(client.internals.store).session_keep(
        id="known", proof="of-a-password", seconds=10**9
    )
    pushed = {"jid": "from-elsewhere", "class": "Greet", "args": [], "queue": "foreign"}
    await client.redis.lpush(
        "queue:foreign", "no JSON", json.dumps(pushed | {"jid": None}), json.dumps(pushed)
    )
    await ForeignQueuesCommands(client.internals.store).import_queue(
        prefix="", into="", queue="foreign", side="right", count=9, now=THEN
    )


@aioqless.job(klass="Fetch", result_ttl=3600)
async def fetch(job: Job) -> int:
    return 1


@bulk_job(klass="Take", queue="bulks", size=10, within=60)
async def take(jobs: list[Job[None]]) -> None: ...


async def put_together(client: Client) -> None:
    """Put a set of jobs with a callback, and a job that gathers for a bulk."""
    report = NewJob[None]("Report")
    members = client.job_set("import", when_ended=report)
    await members.put_many(NewJob("Greet", jid=f"member-{n}") for n in range(2))
    await client.jobs.cancel("member-1")
    await client.put(take.data(None), jid="gathers")


async def put_durable(client: Client) -> None:
    """Put a running job with steps, output and a child, and a parked one with a signal."""
    store, worker = client.internals.store, "worker-durable"
    commands, queue = DurableCommands(store), client.queue("durable")
    await queue.put("Greet", jid="with-steps")
    await queue.put("Greet", jid="parked")
    job, _ = await queue.pop(2, worker=worker)
    assert job.fence is not None
    await commands.step(
        jid="with-steps", worker=worker, now=THEN, kind="step", name="plan", result="[1]"
    )
    child = '{"queue":"children","klass":"Greet","data":"{}"}'
    await commands.call(jid="with-steps", worker=worker, now=THEN, name="pay", child=child)
    await OutputCommands(store).emit(
        worker=worker,
        now=THEN,
        batch=[{
            "jid": "with-steps", "fence": job.fence, "start": 0, "count": 1, "values": "[1]",
            "ttl": 10**9,
        }],
    )  # fmt: skip
    await commands.wait(
        jid="parked", worker=worker, now=THEN, wait_kind="wait", name="approval", timeout=60
    )
    await store.release(jid="parked", worker=worker, now=THEN, waiting=["wait:approval"])
    await commands.signal(jid="parked", name="another", result="true", now=THEN)


async def dump(redis: Redis, namespace: str = "ql") -> list[dict[str, Any]]:
    """Return all keys of a namespace with their values, except those that expire within minutes."""
    found = []
    for key in sorted([key async for key in redis.scan_iter(f"{namespace}:*")]):
        kind = (await redis.type(key)).decode()
        if b":x:request:" not in key:
            lasts = await redis.ttl(key)  # seconds; negative: no expiry
            found.append(
                {
                    "key": key.decode(),
                    "type": kind,
                    "value": await _value(redis, key, kind),
                    "lasts": lasts if lasts > 0 else None,
                }
            )
    return found


async def _value(redis: Redis, key: bytes, kind: str) -> Any:
    match kind:
        case "string":
            return (await redis.get(key)).decode()
        case "hash":
            return {
                name.decode(): value.decode()
                for name, value in sorted((await redis.hgetall(key)).items())
            }
        case "list":
            found = await redis.lrange(key, 0, -1)
            return [item.decode(errors="surrogateescape") for item in found]  # may be MessagePack
        case "set":
            return sorted(item.decode() for item in await redis.smembers(key))
        case "zset":
            return [  # type: ignore[str-unpack]
                [item.decode(), score]
                for item, score in await redis.zrange(key, 0, -1, withscores=True)
            ]
        case "stream":
            return [
                [place.decode(), {name.decode(): text.decode() for name, text in of.items()}]
                for place, of in await redis.xrange(key)
            ]
    raise ValueError(f"{key!r} is a {kind}")


async def restore(redis: Redis, entries: list[dict[str, Any]]) -> None:
    """Restore a snapshot into an empty Redis."""
    for entry in entries:
        key, value = entry["key"], entry["value"]
        match entry["type"]:
            case "string":
                await redis.set(key, value)
            case "hash":
                await redis.hset(key, mapping=value)
            case "list":
                await redis.rpush(key, *(each.encode(errors="surrogateescape") for each in value))
            case "set":
                await redis.sadd(key, *value)
            case "zset":
                await redis.zadd(key, dict(value))
            case "stream":
                for place, of in value:
                    await redis.xadd(key, of, id=place)
        if entry["lasts"]:
            await redis.expire(key, entry["lasts"])


async def main() -> None:
    file = FOLDER / f"{aioqless.__version__}.jsonl"
    if file.exists():
        sys.exit(f"{file} is there: delete it if {aioqless.__version__} is not released yet")
    with server() as url:
        async with (
            Client(url, clock=lambda: THEN, name="snapshot") as client,
            Redis.from_url(url) as redis,
        ):
            await put_everything(client)
            lines = [json.dumps(entry) for entry in await dump(redis)]
    FOLDER.mkdir(exist_ok=True)
    file.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    asyncio.run(main())
