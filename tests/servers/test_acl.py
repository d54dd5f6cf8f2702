"""Redis users with the permissions of a role."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest
from redis import exceptions
from redis.asyncio import Redis

from aioqless import (
    Client,
    Fail,
    Job,
    Key,
    Limit,
    NewJob,
    Next,
    Retry,
    Settings,
    Worker,
    chain,
    job,
)
from aioqless.cli.acl_roles import ROLES, user
from aioqless.client.archive import Archive
from aioqless.client.events import Put
from aioqless.contrib.human_tasks import TaskQueue
from aioqless.contrib.human_tasks.reservation import Reservation
from aioqless.store.command_header import command_names
from aioqless.store.script_composer import compose, source
from tests.conftest import Until
from tests.lua.test_invalid_arguments import every_form
from tests.server import OwnServer

PASSWORD = "p@ss/w:rd #é%?&"

ByRole = Callable[[str], Client]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnServer]:
    server = OwnServer(tmp_path_factory.mktemp("acl"))
    server.start()
    yield server
    server.kill()


@pytest.fixture
async def root(server: OwnServer, namespace: str) -> Any:
    async with Client(server.url, namespace=namespace) as client:
        await client.redis.flushdb()
        for role in ROLES:
            _, *rules = user(role, namespace, PASSWORD).split(" ")
            await client.redis.execute_command("ACL", "SETUSER", *rules)
        await client.redis.set("other:key", "secret")
        yield client


@pytest.fixture
def as_a(server: OwnServer, namespace: str, root: Client) -> ByRole:
    """Return a client of the user with a role."""

    def as_a(role: str) -> Client:
        return Client(
            server.url.replace("redis://", f"redis://{role}:{quote(PASSWORD, safe='')}@"),
            namespace=namespace,
        )

    return as_a


def test_every_command_belongs_to_a_role() -> None:
    assert set(command_names()) - set().union(*ROLES.values()) == {
        "import"
    }  # which reads keys of other systems, with any name
    assert set().union(*ROLES.values()) <= set(command_names())


@pytest.mark.parametrize("role", ROLES)
async def test_role_may_call_each_form_of_its_scripts(
    as_a: ByRole, root: Client, role: str
) -> None:
    """The reply may be an error. With `AIOQLESS_LEAST=1`, all tests in tests/lua run so."""
    called = set()
    async with as_a(role) as client:
        for form in every_form():
            if (name := form.command.name) in ROLES[role]:
                called.add(name)
                await root.queue("mail").put("Greet", jid="a", tags=["x"])
                keys = [f"{client.namespace}:q:{key}" for key in form.keys]
                try:
                    await client.redis.eval(
                        compose(name, client.namespace).text, len(keys), *keys, *form.argv()
                    )
                except exceptions.ResponseError as refused:
                    assert "permission" not in str(refused).lower(), (name, form.word, refused)
    assert called == ROLES[role]


async def test_dashboard_may_fix_every_problem_that_check_finds(as_a: ByRole, root: Client) -> None:
    """The fix changes keys that it finds, whose names are not in the scripts."""
    for key in (
        "w:gone:jobs",
        "x:limit-running:k",
        "x:held-back:k",
        "x:ticks",
        "completed",
        "q:mail-depends",
    ):
        await root.redis.zadd(f"{root.namespace}:{key}", {"nobody": 1})
    await root.redis.rpush(f"{root.namespace}:j:nobody-history", "[]")
    await root.redis.set(f"{root.namespace}:x:unique:k", ":nobody")
    await root.redis.set(f"{root.namespace}:x:result:nobody", "1 1")
    async with as_a("dashboard") as client:
        assert len(await client.check(resolve=True)) > 8
    assert await root.check() == []


def test_acl_line_has_a_password_hash_and_patterns_of_its_namespace_only() -> None:
    line = user("producer", "{mail*}", "s3cret", "app")
    assert line.startswith("user app reset on #") and "s3cret" not in line
    assert all(
        word.lstrip("~&%R").startswith("{mail\\*}") for word in line.split() if word[0] in "~&%"
    )
    with pytest.raises(ValueError, match="there is no role 'boss'; there are producer, worker"):
        user("boss", "ql", "x")


@pytest.mark.parametrize("role", ROLES)
def test_role_has_each_redis_command_of_its_scripts(role: str) -> None:
    granted = {word[1:].partition("|")[0] for word in user(role, "ql", "x").split()}
    called = re.compile(r"redis\.p?call\(\s*'([A-Z]+)'")
    wanted = {word.lower() for name in ROLES[role] for word in called.findall(source(name))}
    assert wanted - granted == set()


async def test_producer_can_put_wait_and_cancel(as_a: ByRole, root: Client) -> None:
    async with as_a("producer") as client:
        mail = client.queue("mail")
        await mail.put(
            "Greet",
            {"n": 1},
            jid="a",
            tags=["x"],
            priority=-1,
            delay=0,
            retries=2,
            unique=Key("one"),
            limits=[Limit("k", max_concurrency=3)],
        )
        assert await mail.put("Greet", jid="again", unique=Key("one")) == "a"
        await mail.put_many(
            [
                NewJob("Greet", jid="b", depends=["a"]),
                NewJob("Greet", jid="c", delay=10, if_dependency_fails="cancel"),
            ]
        )
        await mail.put_flow(chain(NewJob("Greet", jid="d"), NewJob("Greet", jid="e")))
        delayed = await client.jobs.get("c")
        assert delayed
        await delayed.move("mail")
        recurring = await mail.recur("Greet", every=60, jid="r")
        await recurring.cancel()
        await (await mail.recur("Greet", cron="0 2 * * *", jid="cron")).cancel()
        found = await client.jobs.get("a")
        assert found
        await found.tag("y")
        await client.jobs.cancel("d", "e")
        assert await mail.length() == 2
        popped = [await root.queue("mail").pop() for _ in range(2)]
        waiting = asyncio.ensure_future(found.wait(timeout=60))
        for (each,) in popped:
            await each.fail("x", group="typo") if each.jid == "c" else await each.complete()
        await waiting
        await mail.put("Greet", jid="c")  # a failed job is retried
    assert await root.check() == []


async def test_worker_role_suffices_for_workers(as_a: ByRole, root: Client, until: Until) -> None:
    ended: list[str] = []

    @job(klass="Through", result_ttl=60)
    async def through(job: Job[Any]) -> int:
        await job.heartbeat()
        job.progress(0.5, "half")
        await job.log("here")
        ended.append(job.jid)
        return 1

    @job(klass="Onward")
    async def onward(job: Job[Any]) -> Next | None:
        return Next("post", delay=0.01) if job.queue == "mail" else None

    @job(klass="Again")
    async def again(job: Job[Any]) -> None:
        if job.remaining > 1:
            raise Retry(delay=0.01)

    @job(klass="Wrong")
    async def wrong(job: Job[Any]) -> None:
        raise Fail("as ever", group="wrong")

    @job(klass="Every", queue="mail", every=0.2)
    async def every(job: Job[Any]) -> None:
        ended.append("every")

    @job(klass="Cron", cron="* * * * *")
    async def cron(job: Job[Any]) -> None: ...

    await root.config.set("mail-rate-limit", "1000/1")
    await root.config.set("mail-max-concurrency", "50")
    async with as_a("worker") as client:
        settings = Settings(queues=("mail", "post", "default"), poll=0.05)
        async with Worker(
            client, through, onward, again, wrong, every, cron, settings=settings, name="mailer"
        ):
            mail = root.queue("mail")
            for number in range(5):
                await mail.put(
                    "Through",
                    jid=f"t{number}",
                    limits=[Limit("t", max_concurrency=2)],
                    unique=Key(f"u{number}"),
                )
            for klass in ("Onward", "Again", "Wrong"):
                await mail.put(klass, jid=klass, retries=3)
            await mail.put("Through", jid="last", depends=["Onward", "Again"])
            await until(lambda: {"last", "every", *(f"t{n}" for n in range(5))} <= set(ended))
            await until(root.jobs.failed_counts)
            await root.workers.subscribe("mailer", "more")
            assert await client.queue("more").put("Through")
    assert await root.check() == []


async def test_dashboard_role_suffices_for_pages_and_actions(as_a: ByRole, root: Client) -> None:
    await root.queue("mail").put_many(NewJob("Greet", jid=jid) for jid in "abcd")
    (failing, holding) = await root.queue("mail").pop(2)
    await failing.fail("x", group="typo")
    async with as_a("dashboard") as client:
        mail = client.queue("mail")
        assert (
            (await mail.counts()).waiting == 2
            and await client.queues()
            and await client.workers.counts()
        )
        assert (
            await client.jobs.failed_counts() == {"typo": 1}
            and (await client.jobs.failed_in("typo"))[0] == 1
        )
        await mail.stats()
        await mail.peek()
        await mail.pause()
        await mail.resume()
        assert await mail.unfail("typo") == 1
        await client.internals.store.timeout(jids=[holding.jid])
        await client.config.set("heartbeat", 30)
        await client.config.unset("heartbeat")
        assert sorted(await client.jobs.cancel("c", "d")) == ["c", "d"]
        assert (await mail.clear(["waiting", "depends", "failed"])).canceled == 2
        assert await client.check(resolve=True) == []


async def test_reader_role_suffices_for_all_reads(as_a: ByRole, root: Client) -> None:
    await root.queue("mail").put("Greet", jid="a", tags=["x"])
    async with as_a("reader") as client:
        found = await client.jobs.get("a")
        assert (
            found
            and found.tags == ["x"]
            and await client.queues()
            and await client.workers.counts() == []
        )
        await client.queue("mail").stats()
        assert (
            await client.queue("mail").jids("waiting") == ["a"]
            and await client.jobs.failed_counts() == {}
        )
        async with client.events() as events:
            await root.queue("mail").put("Greet", jid="b")
            event = await anext(aiter(events))
            assert isinstance(event, Put) and event.jid == "b"


async def test_reader_follows_a_job_set_to_its_end(as_a: ByRole, root: Client) -> None:
    members = root.job_set("m", when_ended=NewJob("Report", {}))
    await members.put(NewJob("Greet", {}), jid="a")
    await members.close()
    await root.jobs.cancel("a")
    async with as_a("reader") as client:
        statuses = [status async for status in client.job_set("m").follow(interval=0.01)]
    assert [(status.has_ended, status.ended_jid) for status in statuses] == [(True, "m-ended-1")]


async def test_people_role_suffices_for_human_tasks(as_a: ByRole, root: Client) -> None:
    await root.queue("review").put_many(NewJob("Page", {"n": number}) for number in range(5))
    async with as_a("people") as client:
        desk = TaskQueue(client, "review")
        for leave in (Reservation.skip, Reservation.give_back):
            had = await desk.reserve("ann")
            assert had
            await leave(had)
        had = await desk.reserve("ann")
        assert had and await had.extend(60) and await had.finish({"good": True}) == "complete"
        had = await desk.reserve("bob", again=True)
        assert had
        await had.fail("unreadable")
        had = await desk.reserve("bob", again=True)
        assert had
        await had.hand_over("ann")
        assert await desk.reserve("ann") and (await desk.counts()).running == 1
    assert await root.check() == []


async def test_archiver_role_suffices_for_the_archive(as_a: ByRole, root: Client) -> None:
    await root.config.set("archive", "on")
    for _ in range(3):
        await root.queue("mail").put("Greet")
        (running,) = await root.queue("mail").pop()
        await running.complete()
    async with as_a("archiver") as client:
        archive = Archive(client.internals.store)
        state = await archive.state()
        assert state.length == 3 and state.last
        entries = await client.redis.xrange(f"{client.namespace}:x:archive", "-", "+")
        assert len(entries) == 3  # type: ignore[arg-type]
        assert await archive.trim(state.last, "lake") >= 2
        assert (await archive.sweep()).found == 0
        assert [each.name for each in await client.queues()] == ["mail"]  # for the backlog
        assert await client.lags("mail") == [0]
        seen = [each.name for each in await client.workers.counts()]
        assert seen and await client.metrics.workers(*seen) == {}


# Commands that a role does not need

Attempt = Callable[[Redis, str], Awaitable[Any]]


def attempt(*command: str) -> Attempt:
    async def made(redis: Redis, namespace: str) -> Any:
        words = [each.replace("NS", namespace) for each in command]
        return await redis.execute_command(*words)

    made.__name__ = " ".join(command)
    return made


EVERYBODY = [
    attempt("FLUSHALL"), attempt("FLUSHDB"), attempt("KEYS", "*"), attempt("CONFIG", "GET", "*"),
    attempt("SCRIPT", "FLUSH"),
    attempt("ACL", "LIST"), attempt("CLIENT", "LIST"), attempt("MONITOR"), attempt("SHUTDOWN"),
    attempt("SLAVEOF", "NO", "ONE"), attempt("GET", "other:key"), attempt("SET", "other:key", "x"),
    attempt("PUBLISH", "other:log", "x"),
    attempt("EVAL", "return redis.call('GET', 'other:key')", "0"),
    attempt("EVAL", "return redis.call('KEYS', '*')", "0"),
    attempt("FUNCTION", "LIST"), attempt("MODULE", "LIST"),
    attempt("MIGRATE", "127.0.0.1", "1", "NS:config", "0", "1"),
    attempt("RESTORE", "NS:q:x", "0", "x"), attempt("SORT", "NS:queues"),
    attempt("DUMP", "NS:queues"),
]  # fmt: skip
OF_ROLE = {
    "producer": [
        attempt("HSET", "NS:config", "heartbeat", "1"),
        attempt("SADD", "NS:paused_queues", "mail"), attempt("ZPOPMAX", "NS:q:mail-work"),
        attempt("INCRBY", "NS:x:fence", "1"), attempt("HSET", "NS:x:name-lease:mailer", "id", "x"),
    ],
    "worker": [attempt("HSET", "NS:config", "heartbeat", "1"),
        attempt("SADD", "NS:paused_queues", "mail")],
    "people": [attempt("HSET", "NS:config", "heartbeat", "1"),
        attempt("SADD", "NS:paused_queues", "mail")],
    "dashboard": [attempt("ZPOPMAX", "NS:q:mail-work"),
        attempt("HSET", "NS:x:name-lease:mailer", "id", "x")],
    "reader": [
        attempt("ZADD", "NS:queues", "1", "x"), attempt("UNLINK", "NS:q:mail-work"),
        attempt("SADD", "NS:paused_queues", "mail"),
        attempt("HSET", "NS:j:a", "state", "x"), attempt("SET", "NS:x:fence", "1"),
    ],
    "archiver": [attempt("ZREM", "NS:q:mail-work", "a"), attempt("UNLINK", "NS:j:a"),
        attempt("HSET", "NS:config", "heartbeat", "1")],
}  # fmt: skip


@pytest.mark.parametrize("role", ROLES)
async def test_commands_outside_a_role_are_refused(
    as_a: ByRole, root: Client, namespace: str, role: str
) -> None:
    async with as_a(role) as client:
        await client.redis.ping()
        for made in (*EVERYBODY, *OF_ROLE[role]):
            with pytest.raises(exceptions.RedisError) as refused:
                await made(client.redis, namespace)
            assert any(
                said in str(refused.value) for said in ("permissions", "can't run", "can't access")
            ), (made.__name__, refused.value)
        with pytest.raises(exceptions.NoPermissionError):
            async with client.redis.pubsub() as pubsub:
                await pubsub.subscribe("other:log")
                await pubsub.get_message(timeout=30)
                await pubsub.get_message(timeout=30)
    assert await root.redis.get("other:key") == b"secret"


@pytest.mark.parametrize("role", ["producer", "worker", "people", "dashboard"])
async def test_role_that_may_delete_jobs_can_clear_a_queue(
    as_a: ByRole, root: Client, role: str
) -> None:
    await root.queue("mail").put("Greet")
    async with as_a(role) as client:
        assert (await client.queue("mail").clear()).canceled == 1


@pytest.mark.parametrize("role", ["reader", "archiver"])
async def test_role_that_may_not_delete_jobs_cannot_clear_a_queue(
    as_a: ByRole, root: Client, role: str
) -> None:
    await root.queue("mail").put("Greet")
    async with as_a(role) as client:
        with pytest.raises(exceptions.ResponseError):
            await client.queue("mail").clear()
    assert await root.queue("mail").length() == 1


@pytest.mark.parametrize("role", ROLES)
async def test_script_of_a_user_can_change_jobs_unless_it_is_a_reader(
    as_a: ByRole, root: Client, namespace: str, role: str
) -> None:
    await root.queue("mail").put("Greet", jid="a")
    change = "return redis.call('HSET', KEYS[1], 'tags', '[\"changed\"]')"
    async with as_a(role) as client:
        if role == "reader":
            with pytest.raises(exceptions.RedisError, match=r"permissions|can't run"):
                await client.redis.eval(change, 1, f"{namespace}:j:a")
        else:
            await client.redis.eval(change, 1, f"{namespace}:j:a")
    job = await root.jobs.get("a")
    assert job and job.tags == ([] if role == "reader" else ["changed"])


@pytest.mark.parametrize("role", sorted({*ROLES} - {"dashboard"}))
async def test_pausing_and_configuring_are_refused_to_all_but_the_dashboard(
    as_a: ByRole, root: Client, role: str
) -> None:
    async with as_a(role) as client:
        with pytest.raises(exceptions.ResponseError):
            await client.queue("mail").pause()
        with pytest.raises(exceptions.ResponseError):
            await client.config.set("heartbeat", 5)


@pytest.mark.parametrize("role", ["producer", "dashboard", "reader", "archiver"])
async def test_pop_without_the_worker_role_is_refused_and_changes_nothing(
    as_a: ByRole, root: Client, role: str
) -> None:
    await root.queue("mail").put("Greet", jid="a")
    before = await root.internals.store.get(jid="a")
    async with as_a(role) as client:
        with pytest.raises(exceptions.ResponseError):
            await client.queue("mail").pop()
    assert await root.internals.store.get(jid="a") == before
    assert [each.jid for each in await root.queue("mail").pop()] == ["a"]


async def test_wrong_password_or_user_raises_without_showing_it(
    server: OwnServer, root: Client
) -> None:
    for who in ("worker:wrong", "nobody:wrong"):
        async with Client(server.url.replace("redis://", f"redis://{who}@")) as client:
            with pytest.raises(exceptions.AuthenticationError) as info:
                await client.queue("mail").length()
            assert "wrong" not in str(info.value).replace("WRONGPASS", "")
