"""The partitioned client on a single server: what it puts, finds, counts and configures."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.exceptions import NoPermissionError

from aioqless import AioqlessError, Client, Job, Key, Limit, NewJob, chain, group, job
from aioqless.cli import acl_roles
from aioqless.client.new_job import encode_job
from aioqless.contrib.partitions import PartitionedClient, WrongPartitions
from aioqless.errors import JobExists, NoSuchJob
from tests.conftest import existing_job
from tests.contrib.partitions.conftest import pop


@job(klass="Greet", limits=[Limit(max_concurrency=5)])
async def greet(job: Job[Any], name: str) -> None: ...


async def test_put_jobs_are_spread_and_found_by_jid(partitioned: PartitionedClient) -> None:
    jids = await partitioned.put_many([NewJob("Greet", {"n": n}) for n in range(200)])
    found = await partitioned.jobs.multiget(*jids)
    assert [each.jid for each in found] == jids
    lengths = [await each.queue("default").length() for each in partitioned.partitions]
    assert sum(lengths) == 200 == await partitioned.queue("default").length()
    assert min(lengths) > 20


async def test_few_jobs_put_at_the_same_time_are_spread(partitioned: PartitionedClient) -> None:
    """A small share of a limit for each of them would slow them down."""
    await asyncio.gather(*(partitioned.put("Greet", {"n": n}) for n in range(16)))
    lengths = [await each.queue("default").length() for each in partitioned.partitions]
    assert min(lengths) >= 2


async def test_jobs_of_all_partitions_are_moved_retried_and_canceled(
    partitioned: PartitionedClient,
) -> None:
    mail, slow, jobs = partitioned.queue("mail"), partitioned.queue("slow"), partitioned.jobs
    jids = await mail.put_many([NewJob("Greet", {"n": n}) for n in range(40)])
    for popped in await pop(partitioned, "mail", 5):
        await popped.fail("no such word", group="typo")

    assert await jobs.retry_many(jids) == 5
    assert await jobs.move_many(jids, "slow") == 40 == await slow.length()
    positions = [await jobs.position(jid) for jid in jids]
    assert {each.queue for each in positions if each} == {"slow"} and None not in positions
    assert (await jobs.cancel_many(jids)).canceled == 40


async def test_job_is_changed_in_its_own_partition_only(partitioned: PartitionedClient) -> None:
    jid = await partitioned.put("Greet", {}, jid="order-17", tags=["a"])
    home = partitioned.partitions[partitioned.partition_of("order-17")]
    (popped,) = await pop(partitioned, "default")
    assert await popped.heartbeat() > 0
    await popped.retry(delay=60)
    found = await existing_job(home, jid)
    assert found.state == "scheduled"
    assert await partitioned.jobs.cancel(jid, "unknown") == ["order-17"]
    with pytest.raises(NoSuchJob):
        await jid.job()


async def test_many_jobs_are_canceled_and_their_states_read_in_the_order_of_the_jids(
    partitioned: PartitionedClient,
) -> None:
    jids = [await partitioned.put("Greet", jid=f"job-{n}") for n in range(20)]
    asked = [*jids[:5], "unknown", *jids[5:]]
    states = await partitioned.internals.store.states(jids=asked)
    assert states == ["waiting"] * 5 + [""] + ["waiting"] * 15
    assert await partitioned.jobs.cancel(*asked) == jids


# Jobs that share a partition


async def test_job_sets_are_refused(partitioned: PartitionedClient) -> None:
    with pytest.raises(AioqlessError, match="no job sets with partitions"):
        partitioned.job_set("import")


async def test_jobs_with_a_unique_key_meet(partitioned: PartitionedClient) -> None:
    jids = [await partitioned.put("Greet", unique=Key(f"key-{n % 5}")) for n in range(20)]
    assert len(set(jids)) == 5
    assert all(
        partitioned.partition_of(jid) == partitioned.partition_of(f"key-{n % 5}")
        for n, jid in enumerate(jids)
    )
    with pytest.raises(JobExists):
        await partitioned.put("Greet", unique=Key("key-1"), if_exists="raise")


async def test_concurrency_limit_of_a_handler_holds_over_all_of_its_jobs(
    partitioned: PartitionedClient,
) -> None:
    await partitioned.put_many([greet.data(name=str(n)) for n in range(30)], queue="mail")
    assert len(await pop(partitioned, "mail", 30)) == 5


async def test_jid_for_a_key_is_in_its_partition(partitioned: PartitionedClient) -> None:
    home = partitioned.partition_of("customer-7")
    jids = [
        await partitioned.put("Greet", jid=partitioned.jid_for("customer-7")),
        await partitioned.put("Greet", queue="mail", jid=partitioned.jid_for("customer-7")),
    ]
    assert [partitioned.partition_of(jid) for jid in jids] == [home] * 2
    for jid in jids:
        assert await partitioned.partitions[home].jobs.get(jid) is not None


async def test_job_follows_those_that_it_depends_on(partitioned: PartitionedClient) -> None:
    first = await partitioned.put("Greet")
    second = await partitioned.put("Greet", depends=[first])
    assert partitioned.partition_of(second) == partitioned.partition_of(first)
    assert (await second.job()).state == "depends"


async def test_failures_among_dependencies_are_read_from_their_partition(
    partitioned: PartitionedClient,
) -> None:
    first = await partitioned.put("Greet")
    second = await partitioned.put("Greet", depends=[first])
    (popped,) = await pop(partitioned, "default")
    await popped.fail("message", group="group")
    assert (await (await second.job()).failures()).keys() == {first}


async def test_workflow_is_in_one_partition(partitioned: PartitionedClient) -> None:
    steps = chain(NewJob("A"), group(NewJob("B"), NewJob("C", unique=Key("c"))), NewJob("D"))
    flow = await partitioned.put_flow(steps)
    assert {partitioned.partition_of(jid) for jid in flow.jids} == {partitioned.partition_of("c")}
    first = NewJob("A", jid=partitioned.jid_for("k"))
    keyed = await partitioned.put_flow(chain(first, NewJob("B")), queue="mail")
    assert {partitioned.partition_of(jid) for jid in keyed.jids} == {partitioned.partition_of("k")}


def names_apart(client: PartitionedClient) -> tuple[str, str]:
    """Two names of different partitions."""
    first = "a"
    return first, next(
        name for name in "bcdefgh" if client.partition_of(name) != client.partition_of(first)
    )


async def test_combination_of_several_partitions_is_refused_before_anything_is_written(
    partitioned: PartitionedClient,
) -> None:
    one, other = names_apart(partitioned)
    waiting = await partitioned.put("Greet", jid=one)
    queue = partitioned.queue("mail")
    for refused in (
        queue.put("Greet", jid=other, unique=Key(one)),
        queue.put("Greet", jid=other, limits=[Limit(one, max_concurrency=1)]),
        queue.put("Greet", unique=Key(other), limits=[Limit(one, max_concurrency=1)]),
        queue.put("Greet", jid=other, depends=[waiting]),
        queue.put("Greet", depends=[one, other]),
        queue.put_many([NewJob("Greet"), NewJob("Greet", jid=other, unique=Key(one))]),
        queue.put_flow(chain(NewJob("A", jid=one), NewJob("B", jid=other))),
        queue.put_flow(chain(NewJob("A", unique=Key(one)), NewJob("B", unique=Key(other)))),
        queue.recur("Greet", jid=other, every=60, unique=Key(one)),
    ):
        with pytest.raises(ValueError, match=r"belongs to partition \d of 4, and '.+' to \d"):
            await refused
    assert await queue.length() == 0
    for each in partitioned.partitions:
        assert [found async for found in each.recurring.all()] == []


async def test_jobs_that_were_prepared_elsewhere_are_checked(
    partitioned: PartitionedClient,
) -> None:
    one, other = names_apart(partitioned)
    job = encode_job(NewJob("Greet", jid=other, unique=Key(one)), 1000)
    fine = encode_job(NewJob("Greet"), 1000)
    refused, jid = await partitioned.queue("mail").put_encoded([job, fine])
    assert "belongs to partition" in str(refused)
    assert jid == fine["jid"]


# What sums up


async def test_counts_and_statistics_are_those_of_all_partitions(
    partitioned: PartitionedClient,
) -> None:
    queue = partitioned.queue("mail")
    await queue.put_many([NewJob("Greet", tags=["t"]) for _ in range(40)])
    popped = await pop(partitioned, "mail", 30)
    await asyncio.gather(*(each.complete() for each in popped[:10]))
    await asyncio.gather(*(each.fail("message", group="group") for each in popped[10:18]))
    counts = await queue.counts()
    assert (counts.waiting, counts.running) == (10, 12)
    (overview,) = await partitioned.queues()
    assert (overview.popped, overview.completed, overview.failures) == (30, 10, 8)
    stats = await queue.stats()
    assert (stats.wait.count, stats.run.count, stats.failures) == (30, 10, 8)
    assert (await queue.days(1))[0].completed == 10
    (worker,) = await partitioned.workers.counts()
    assert worker.jobs == 12 == len((await partitioned.workers.jobs(worker.name)).jobs)
    (summary,) = await partitioned.workers.working(worker.name, most=3)
    assert (summary.jobs, len(summary.doing)) == (12, 3)
    assert await partitioned.jobs.failed_counts() == {"group": 8}
    assert (await partitioned.jobs.failure_groups("group"))[0].total == 8
    assert await queue.lag() > 0


async def test_sums_of_more_queues_than_a_call_returns_are_complete(
    partitioned: PartitionedClient,
) -> None:
    queues = [f"queue-{n}" for n in range(300)]
    for name in queues:
        await partitioned.put("Greet", queue=name)
        await partitioned.put("Greet", queue=name)
    found = await partitioned.queues()
    assert {each.name: each.waiting for each in found} == dict.fromkeys(queues, 2)
    assert await partitioned.queues(offset=250, count=100) == found[250:]


async def test_lists_finds_and_clears_name_a_partition(partitioned: PartitionedClient) -> None:
    await partitioned.queue("mail").put_many([NewJob("Greet", tags=["t"]) for _ in range(50)])
    queue, jobs = partitioned.queue("mail"), partitioned.jobs
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: queue.jids("waiting"),
        queue.peek,
        queue.pop,
        queue.tenants,
        queue.clear,
        lambda: jobs.failed_in("group"),
        lambda: jobs.retry_group("group", 5),
        lambda: jobs.tagged_jids("t"),
        jobs.tags,
        jobs.tracked,
        lambda: anext(aiter(jobs.filter("greet"))),
        lambda: anext(aiter(partitioned.recurring.all())),
    ]
    for number, call in enumerate(calls):
        with pytest.raises(AioqlessError, match=r"one partition at a time: call it on client\.p"):
            pytest.fail(f"call {number} returned {await call()}")
    assert await queue.length() == 50
    found: list[str] = []
    for each in partitioned.partitions:
        found += [jid async for page in each.jobs.filter("tag:t") for jid in page.jids]
        await each.queue("mail").clear()
    assert len(set(found)) == 50
    assert (await queue.length(), await partitioned.check()) == (0, [])


async def test_damage_in_any_partition_is_found_and_repaired(
    partitioned: PartitionedClient,
) -> None:
    jid = await partitioned.put("Greet", queue="mail")
    number = partitioned.partition_of(jid)
    namespace = partitioned.partitions[number].namespace
    assert await partitioned.redis.zrem(f"{namespace}:q:mail-work", jid) == 1
    for resolve in (False, True):
        (found,) = await partitioned.check(resolve=resolve)
        assert (found.about["jid"], found.about["partition"]) == (jid, number)
        assert found.fixed == resolve
    assert await partitioned.check() == []


async def test_paused_queue_gives_no_jobs(partitioned: PartitionedClient) -> None:
    queue = partitioned.queue("mail")
    await queue.put_many([NewJob("Greet") for _ in range(20)])
    await queue.pause()
    assert (await queue.counts()).paused
    assert await pop(partitioned, "mail", 20) == []
    await queue.resume()
    assert len(await pop(partitioned, "mail", 20)) == 20


async def test_events_come_from_all_partitions(partitioned: PartitionedClient) -> None:
    async with partitioned.events(kind="put") as events:
        jids = await partitioned.put_many([NewJob("Greet") for _ in range(20)])
        async with asyncio.timeout(60):
            seen: set[str] = set()
            async for event in events:
                seen.add(getattr(event, "jid", ""))
                if len(seen) == 20:
                    break
    assert seen == set(jids)


async def test_block_of_events_that_is_left_early_ends_without_an_error(
    partitioned: PartitionedClient,
) -> None:
    """The iterator that is left behind closes nothing that the block closes, too."""
    errors: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))

    async def read_one() -> None:
        async with partitioned.events() as events:
            await partitioned.put("Greet")
            async for _ in events:
                return

    await read_one()
    await partitioned.ping()
    gc.collect()
    assert errors == []


async def test_end_of_a_job_is_waited_for_in_any_partition(
    partitioned: PartitionedClient,
) -> None:
    jids = [await partitioned.put("Greet") for _ in range(8)]
    waiting = [asyncio.create_task(partitioned.jobs.wait(jid, 60)) for jid in jids]
    for each in await pop(partitioned, "default", 8):
        await each.complete()
    assert {(await each).state for each in waiting} == {"complete"}


async def test_jobs_are_tracked_in_their_partition(partitioned: PartitionedClient) -> None:
    jids = [await partitioned.put("Greet") for _ in range(5)]
    for jid in jids:
        await partitioned.jobs.track(jid)
    found = [await each.jobs.tracked() for each in partitioned.partitions]
    assert {each.jid for tracked, _ in found for each in tracked} == set(jids)


async def test_recurring_job_is_in_one_partition_with_its_instances(
    partitioned: PartitionedClient,
) -> None:
    recurring = await partitioned.recur("Greet", jid="nightly", cron="@daily", queue="mail")
    hourly = await partitioned.queue("mail").recur("Greet", jid="hourly", every=3600, offset=3600)
    found = [job for each in partitioned.partitions async for job in each.recurring.all()]
    assert {each.jid for each in found} == {"{nightly}", "{hourly}"}
    for each in (recurring, hourly):
        instance = await existing_job(partitioned, await each.run_now())
        assert instance.spawned_from == each.jid
    nightly = await partitioned.recurring.get("nightly")
    assert nightly is not None
    await nightly.cancel()
    assert await partitioned.recurring.get("nightly") is None


# Shared configuration


async def test_option_is_set_in_all_partitions(partitioned: PartitionedClient) -> None:
    await partitioned.config.set("heartbeat", 33)
    values = [await each.config.get("heartbeat") for each in partitioned.partitions]
    assert values == ["33"] * 4
    await partitioned.config.unset("heartbeat")
    assert await partitioned.config.get("heartbeat") == 60


@pytest.mark.parametrize(
    ("option", "value", "share"),
    [
        ("mail-max-concurrency", "8", "2"),
        ("mail-max-length", "4000", "1000"),
        ("mail-rate-limit", "40/60", "10/60"),
        ("mail-max-concurrency", "0", "0"),
    ],
)
async def test_limit_of_a_queue_is_divided(
    partitioned: PartitionedClient, option: str, value: str, share: str
) -> None:
    await partitioned.config.set(option, value)
    assert [await each.config.get(option) for each in partitioned.partitions] == [share] * 4
    assert await partitioned.config.get(option) == value
    assert (await partitioned.config.all())[option] == value


@pytest.mark.parametrize(("value", "better"), [("10", "8 or 12"), ("3", "4"), ("9/60", "8 or 12")])
async def test_limit_of_a_queue_that_cannot_be_divided_is_refused(
    partitioned: PartitionedClient, value: str, better: str
) -> None:
    option = "mail-rate-limit" if "/" in value else "mail-max-concurrency"
    with pytest.raises(ValueError, match=f"must be a multiple of 4, .* set it to {better}, or"):
        await partitioned.config.set(option, value)
    assert await partitioned.config.get(option) is None


# The number of partitions


async def test_another_number_of_partitions_is_refused(
    partitioned: PartitionedClient, redis_url: str, namespace: str
) -> None:
    for number in (1, 2, 3, 48):
        with pytest.raises(
            WrongPartitions, match=f"'{namespace}' has 4 partitions in Redis, not {number}: open it"
        ):
            async with PartitionedClient(redis_url, namespace=namespace, partitions=number):
                pass
    async with PartitionedClient(redis_url, namespace=namespace, partitions=4):
        pass


async def test_namespace_that_was_used_without_partitions_is_refused(
    client: Client, redis_url: str, namespace: str
) -> None:
    await client.put("Greet")
    with pytest.raises(WrongPartitions, match="has no partitions in Redis, not 4"):
        async with PartitionedClient(redis_url, namespace=namespace, partitions=4):
            pass
    async with PartitionedClient(redis_url, namespace=namespace, partitions=1) as same:
        assert await same.queue("default").length() == 1


async def test_lost_record_is_written_again(
    partitioned: PartitionedClient, redis: Redis, redis_url: str, namespace: str
) -> None:
    keys = [f"{each.namespace}:x:partitions" for each in partitioned.partitions]
    await redis.delete(*keys[:3])
    async with PartitionedClient(redis_url, namespace=namespace, partitions=4):
        assert await redis.mget(keys) == [b"4"] * 4


def test_number_comes_from_the_environment(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="say the number of partitions: partitions=48, or AIO"):
        PartitionedClient(redis_url)
    monkeypatch.setenv("AIOQLESS_PARTITIONS", "many")
    with pytest.raises(ValueError, match="AIOQLESS_PARTITIONS must be an integer"):
        PartitionedClient(redis_url)
    monkeypatch.setenv("AIOQLESS_PARTITIONS", "48")
    assert PartitionedClient(redis_url).count == 48


def test_sentinels_are_refused() -> None:
    with pytest.raises(ValueError, match="names one master behind sentinels, which 48 partitions"):
        PartitionedClient("redis+sentinel://a,b/mymaster", partitions=48)


async def test_partitions_share_one_connection(
    partitioned: PartitionedClient, redis: Redis
) -> None:
    await partitioned.put_many([NewJob("Greet") for _ in range(50)])
    clients = await redis.client_list()
    assert [each["name"] for each in clients].count(partitioned.name) == 1


async def test_least_privileges_of_a_role_are_enough(
    partitioned: PartitionedClient, redis: Redis, redis_url: str, namespace: str
) -> None:
    name = f"producer-{namespace}"
    _, *rules = acl_roles.user("producer", f"{namespace}{{*}}", "secret", name).split()[1:]
    await redis.execute_command("ACL", "SETUSER", name, *rules)
    url = redis_url.replace("unix://", f"unix://{name}:secret@")
    try:
        async with PartitionedClient(url, namespace=namespace, partitions=4) as producer:
            jids = await producer.put_many([NewJob("Greet") for _ in range(20)])
            with pytest.raises(NoPermissionError):
                await pop(producer, "default")
        assert len(await partitioned.jobs.multiget(*jids)) == 20
    finally:
        await redis.execute_command("ACL", "DELUSER", name)


async def test_command_of_one_partition_is_refused(partitioned: PartitionedClient) -> None:
    with pytest.raises(AioqlessError, match="works on one partition at a time: call it on client"):
        await partitioned.archive.trim("1-0", reader="me")


async def test_state_of_the_archive_is_that_of_all_streams(
    partitioned: PartitionedClient,
) -> None:
    assert not (await partitioned.archive.state()).on
    await partitioned.config.set("archive", "on")
    await partitioned.put_many([NewJob("Greet") for _ in range(20)], queue="mail")
    for popped in await pop(partitioned, "mail", 20):
        await popped.complete()
    state = await partitioned.archive.state()
    assert (state.on, state.length, state.reader) == (True, 20, None)


async def test_handler_puts_with_the_partitioned_client(partitioned: PartitionedClient) -> None:
    assert Client.current() is partitioned
    jid = await greet.put(name="Ada")
    assert (await jid.job()).data == {"name": "Ada"}
