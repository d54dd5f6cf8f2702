"""Every operation is executed once and returns its result although a reply is lost."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import pytest
from redis import exceptions

from aioqless import (
    Client,
    Fail,
    Job,
    JobRecord,
    Key,
    Limit,
    NewJob,
    Next,
    QueueFull,
    Retry,
    Settings,
    Worker,
    chain,
    group,
)
from aioqless import job as handler
from aioqless.client.archive import Archive
from aioqless.client.job import JobRun
from aioqless.client.job.reading import read_job
from aioqless.client.recurring import RecurringJob
from aioqless.contrib.dashboard.generated_commands import DashboardCommands
from aioqless.store import Call, PopManyRow, ScriptStore, script_store
from aioqless.store.call import T
from aioqless.store.command_header import command_names, read_command
from aioqless.store.script_composer import compose
from aioqless.worker import ReconnectDelays
from tests.client.proxy import Proxy
from tests.command_calls import make_call
from tests.conftest import Until
from tests.lua.story import Story
from tests.server import OwnServer

Operation: TypeAlias = Callable[[Client], Awaitable[Any]]
ONLY_PUBLISH = {
    "remote_control",
    "remote_reply",
}  # a repeated remote-control command has the same effect, and the first answer counts


class Clock:
    """The same times in both namespaces, so that all stored values can be compared."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def record(client: Client, jid: str) -> JobRecord:
    found = await client.jobs.get(jid)
    assert found
    return found


async def template(client: Client, jid: str) -> RecurringJob:
    found = await client.recurring.get(jid)
    assert found
    return found


def of(jid: str, act: Callable[[JobRecord], Awaitable[Any]]) -> Operation:
    async def operation(client: Client) -> Any:
        return await act(await record(client, jid))

    return operation


def holding(jid: str, act: Callable[[Job], Awaitable[Any]]) -> Operation:
    """Return an operation of the worker that holds a job."""

    async def operation(client: Client) -> Any:
        backend = client.internals.backend
        return await act(Job(JobRun(backend, await read_job(backend, jid))))

    return operation


def of_template(jid: str, act: Callable[[RecurringJob], Awaitable[Any]]) -> Operation:
    async def operation(client: Client) -> Any:
        return await act(await template(client, jid))

    return operation


async def changed(held: Job) -> Any:
    held.data["seen"] = [1, 2]
    return await held.complete()


async def damage_and_fix(client: Client) -> Any:
    """Damage a key and repair it with `check`."""
    await client.redis.zadd(f"{client.namespace}:q:mail-work", {"ghost": 1})
    return await client.check(resolve=True)


async def swept(client: Client) -> Any:
    await client.config.set("archive", "on")
    return (await Archive(client.internals.store).sweep()).found


async def recorded_in_the_audit_log(client: Client) -> None:
    await DashboardCommands(client.internals.store).audit_log_add(
        who="ada", act="retry", about="{}", outcome="done"
    )


def mail(act: Callable[[Any], Awaitable[Any]]) -> Operation:
    return lambda client: act(client.queue("mail"))


def script(command: str, *word: str, **arguments: Any) -> Operation:
    return lambda client: make_call(client.internals.store, command, *word, **arguments)


async def pop_rows(client: Client) -> Any:
    """Pop as a worker does; the rows are without the waits, which a repeated reply has not."""
    rows, *rest = await client.internals.store.pop_many(
        worker="ann", count=1, order="ordered", batch=QUEUES
    )
    return [[row[:-1] for row in rows], *rest]


def flow() -> Any:
    return chain(NewJob("A", jid="one"), group(NewJob("B", jid="two"), NewJob("C", jid="three")))


NEW = ("put", "put a few", "put a flow")
QUEUES: list[PopManyRow] = [{"queue": "mail"}]
BEATS = [{"jid": "a"}, {"jid": "c"}]
ENDS = [{"jid": "a", "queue": "mail"}]
TICKS = [{"jid": "night", "tick": 90000, "at": 90000, "next": 99999}]

TOKENS = Limit("tokens", rate=(100, 60), cost=5)

# Operations of a client by command, in a namespace where ann runs `a` and `b`, bob runs `c`, `idle`
# waits, `held` depends on `a`, `bad` has failed, `r` recurs and `resting` is paused.
OPERATIONS: list[tuple[str, str, Operation]] = [
    ("put", "put", mail(lambda queue: queue.put("Greet", {"n": 1}, jid="new", tags=["x"],
        delay=5))),
    ("put", "put again", mail(lambda queue: queue.put("Greet", {"n": 1}, jid="a"))),
    ("put", "put a unique one",
        mail(lambda queue: queue.put("Greet", jid="new", unique=Key("only")))),
    ("put", "put a second unique one",
        mail(lambda queue: queue.put("Greet", jid="new", unique=Key("taken")))),
    ("put_many", "put many",
        mail(lambda queue: queue.put_many(NewJob("Greet",
            jid=f"n{number}") for number in range(250)))),
    ("put_many", "put a few",
        mail(lambda queue: queue.put_many(NewJob("Greet",
            jid=f"n{number}") for number in range(5)))),
    ("put_flow", "put a flow", mail(lambda queue: queue.put_flow(flow()))),
    ("put", "put with a choice",
        mail(lambda queue: queue.put(
            "Greet", jid="new", depends=["bad"], if_dependency_fails="fail"))),
    ("requeue", "move", of("a", lambda job: job.move("billing"))),
    ("pop", "pop", mail(lambda queue: queue.pop(1))),
    ("pop", "pop nothing", lambda client: client.queue("empty").pop(5)),
    ("heartbeat", "heartbeat", holding("a", lambda job: job.heartbeat())),
    ("complete", "complete", holding("a", lambda job: job.complete())),
    ("complete", "complete with data", holding("a", changed)),
    ("complete", "advance", holding("a", lambda job: job.complete("billing", delay=3))),
    ("fail", "fail", holding("a", lambda job: job.fail("no such word", group="typo"))),
    ("retry", "retry", holding("a", lambda job: job.retry(delay=3))),
    ("decline", "a worker declines", script("decline", jid="a", worker="ann", delay=5, timeout=600,
        group="mail-UnknownKlass", message="no handler")),
    ("beat", "a worker sends a beat",
        script("beat", worker="ann", process='{"id":"2"}', queues=["mail", "p*"], number=1,
            counts='[["mail","Greet",[0,0,9,9,18,1]]]')),
    ("release", "release", holding("a", lambda job: job.release())),
    ("cancel", "cancel", lambda client: client.jobs.cancel("idle", "nobody")),
    ("clear", "clear", mail(lambda queue: queue.clear(["waiting", "depends", "failed"]))),
    ("cancel", "cancel one", of("idle", lambda job: job.cancel())),
    ("timeout", "time out", lambda client: client.jobs.unlock("a", "b")),
    ("depends", "depend", of("held", lambda job: job.depend("idle"))),
    ("depends", "undepend", of("held", lambda job: job.undepend())),
    ("priority", "priority", of("idle", lambda job: job.set_priority(-3))),
    ("tag", "tag", of("idle", lambda job: job.tag("y"))),
    ("tag", "untag", of("idle", lambda job: job.untag("x"))),
    ("track", "track", of("idle", lambda job: job.track("z"))),
    ("track", "untrack", of("b", lambda job: job.untrack())),
    ("log", "log", of("idle", lambda job: job.log("halfway", page=12))),
    ("unfail", "unfail", mail(lambda queue: queue.unfail("typo", 1))),
    ("pause", "pause", mail(lambda queue: queue.pause())),
    ("unpause", "resume", lambda client: client.queue("post").resume()),
    ("forget", "forget", mail(lambda queue: queue.forget())),
    ("deregister", "deregister", lambda client: client.workers.deregister("ann")),
    ("config", "set", lambda client: client.config.set("heartbeat", 5)),
    ("config", "unset", lambda client: client.config.unset("grace-period")),
    ("recur", "recur", mail(lambda queue: queue.recur("Greet", every=60, jid="s"))),
    ("recur", "recur by cron", mail(lambda queue: queue.recur("Greet", cron="0 2 * * *", jid="s"))),
    ("recur", "update", of_template("r", lambda recurring: recurring.update(every=70,
        data=[1]))),
    ("recur", "tag a template", of_template("r", lambda recurring: recurring.tag("y"))),
    ("recur", "untag a template", of_template("r", lambda recurring: recurring.untag("x"))),
    ("recur", "pause a template", of_template("r", lambda recurring: recurring.pause())),
    ("recur", "resume a template", of_template("resting", lambda recurring: recurring.resume())),
    ("recur", "run a template now", of_template("r", lambda recurring: recurring.run_now())),
    ("recur", "cancel a template", of_template("r", lambda recurring: recurring.cancel())),
    ("check", "check", damage_and_fix),
    ("pop_many", "a worker pops", pop_rows),
    ("heartbeat_many", "a heart beats", script("heartbeat_many", worker="ann", batch=BEATS)),
    ("complete_many", "a worker completes", script("complete_many", worker="ann", batch=ENDS)),
    ("reserve", "a person reserves", script("reserve", queue="mail", person="ada", worker="ada@1",
        limit=60)),
    ("extend", "a person needs longer", script("extend", jid="a", worker="ann", limit=90)),
    ("hand_over", "a person hands over", script("hand_over", jid="a", worker="ann", to="bob",
        limit=90)),
    ("skip", "a person skips", script("skip", jid="a", person="ann", worker="ann")),
    ("declare", "a worker declares", script("declare", "interval", queue="mail", jid="s",
        klass="K", data="1", next=9, interval=9)),
    ("tick", "a scheduler ticks", script("tick", batch=TICKS)),
    ("import", "an import takes", script("import", "queue", prefix="there:", into="", queue="mail",
        side="right", count=1)),
    ("free_limits", "free limits", script("free_limits", jid="bad", constraints="{}")),
    ("edit", "edit", lambda client: client.jobs.edit("bad", {"n": 2})),
    ("revive", "revive", lambda client: client.jobs.retry("bad", data={"n": 2})),
    ("revive", "revive a group", lambda client: client.jobs.retry_group("typo", 5)),
    ("audit_log", "note an act", recorded_in_the_audit_log),
    ("sweep", "sweep", swept),
    ("archive_trim", "what is archived goes", lambda client:
        Archive(client.internals.store).trim("1-0", "lake")),
    ("charge", "a run charges a limit", holding("a", lambda job: job.charge(TOKENS, 7))),
    ("step", "a run stores a step", script("step", jid="a", worker="ann", kind="step", name="plan",
        result="1")),
    ("wait", "a run waits", script("wait", jid="a", worker="ann", wait_kind="wait", name="go")),
    ("call", "a run calls a job", script("call", jid="a", worker="ann", name="pay",
        child='{"queue":"mail","klass":"Pay","data":"{}"}')),
    ("emit", "a worker sends output", script("emit", worker="ann", batch=[{"jid": "a", "fence": 1,
        "start": 0, "count": 1, "values": "[1]", "ttl": 60}])),
    ("emit_end", "a worker says how much it has sent", script("emit_end", jid="a", worker="ann",
        fence="2", start=3, values="[]", ttl=60)),
    ("set_put", "jobs are put into a set", script("set_put", set_name="i", batch=[{"queue": "mail",
        "jid": "m", "klass": "Greet", "data": "{}"}])),
    ("mark", "a moment is marked", lambda client: client.metrics.mark("moved")),
    ("set_put_flow", "a workflow is put into a set",
        lambda client: client.job_set("i").put_flow(flow(), queue="mail")),
    ("move", "jobs are moved", lambda client: client.jobs.move_many(["idle"], "post")),
    ("set_close", "a set is closed", lambda client: client.job_set("i").close()),
    ("set_act", "a set is canceled", lambda client: client.job_set("old").cancel()),
    ("signal", "signal", lambda client: client.jobs.signal("idle", "go", 1)),
    ("on_failure", "a worker declares what failures put", script("on_failure", "declare",
        klass="Greet", job='{"queue":"mail","klass":"Alert","data":"{}"}')),
]  # fmt: skip


async def build(client: Client, clock: Clock) -> None:
    queue = client.queue("mail")
    await queue.put("Greet", jid="bad")
    (bad,) = await queue.pop()
    await bad.fail("no such word", group="typo")
    for jid in "abc":
        clock.now += 1
        unique, limits = Key("taken") if jid == "b" else None, [TOKENS] if jid == "a" else None
        await queue.put("Greet", {"jid": jid}, jid=jid, unique=unique, limits=limits)
    await queue.pop(2)
    await queue.pop(1, worker="bob")
    await (await record(client, "b")).track()
    await queue.put("Greet", jid="idle", tags=["x"])
    await queue.put("Greet", jid="held", depends=["a"])
    await queue.recur("Greet", every=60, offset=50, jid="r", tags=["x"])
    await (await queue.recur("Greet", every=60, offset=50, jid="resting")).pause()
    await queue.recur("Greet", cron="0 1 * * *", jid="night")
    await client.job_set("old").put("Greet", jid="member", queue="sets")
    await client.config.set("grace-period", 5)
    await client.queue("post").pause()
    await client.redis.delete("there:queue:mail")
    await client.redis.lpush(
        "there:queue:mail",
        *[f'{{"class":"K","args":[],"jid":"sidekiq{number}"}}' for number in range(3)],
    )


def plain(answer: Any) -> Any:
    """Return an answer as comparable values."""
    match answer:
        case Job() | JobRecord() | RecurringJob():
            return {
                name: getattr(answer, name)
                for name in ("jid", "queue", "klass", "priority", "tags")
            }
        case list() | tuple():
            return [plain(each) for each in answer]
        case Exception():
            return repr(answer)
    return answer


@asynccontextmanager
async def namespace_pair(url: str, namespace: str, **options: Any) -> AsyncIterator[Client]:
    clock = Clock()
    async with Client(url, namespace=namespace, name="ann", clock=clock, **options) as client:
        await build(client, clock)
        yield client


async def contents(client: Client) -> dict[str, Any]:
    """Return all keys of the namespace.

    Jobs freed by `depends off` have Redis' own time, since that command has no time argument; so
    have stream entries.
    """
    found = await Story(client.internals.store, client.redis).all_keys()
    for stream in {"x:archive", "x:audit-log"} & found.keys():
        found[stream] = [fields for _, fields in found[stream]]
    waiting = found.get("q:mail-work", {})
    found["q:mail-work"] = {jid: "now" if score < -0.1 else score for jid, score in waiting.items()}
    return found


@pytest.mark.parametrize(
    ("command", "does"),
    [(row[0], row[2]) for row in OPERATIONS],
    ids=[row[1] for row in OPERATIONS],
)
async def test_operation_with_lost_replies_is_executed_once_and_returns_its_result(
    redis_url: str,
    namespace: str,
    proxy: Proxy,
    command: str,
    does: Operation,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[str] = []
    send = ScriptStore.send

    async def noted(store: ScriptStore, call: Call[T]) -> T:
        sent.append(call.command)
        return await send(store, call)

    monkeypatch.setattr(ScriptStore, "send", noted)
    async with namespace_pair(redis_url, f"{namespace}-good") as undisturbed:
        sent.clear()
        answer = plain(await does(undisturbed))
        assert command in sent
        expected = await contents(undisturbed)
    async with namespace_pair(proxy.url, f"{namespace}-bad") as disturbed:
        proxy.about, proxy.drop_firsts = b"EVAL", True
        assert plain(await does(disturbed)) == answer
        proxy.drop_firsts = False
        assert await contents(disturbed) == expected
    assert proxy.dropped


def test_every_writing_command_is_covered_here() -> None:
    commands = {name for name in command_names() if read_command(name).writes}
    assert commands - ONLY_PUBLISH - {command for command, _, _ in OPERATIONS} <= {
        "agenda",  # which does each note once
        "peek",  # which moves due jobs, also in a repeated call
    }


async def test_worker_with_lost_replies_runs_each_job_once(
    client: Client, proxied_client: Client, proxy: Proxy, until: Until
) -> None:
    ran: Counter[str] = Counter()

    @handler(klass="End", retries=3)
    async def end(job: Job[Any], how: str) -> Next | None:
        ran[job.jid] += 1
        await asyncio.sleep(0.02)
        if how == "fail":
            raise Fail("no such word", group="typo")
        if how == "retry" and job.remaining == 3:
            raise Retry(delay=0.1)
        return Next("post") if how == "next" and job.queue == "mail" else None

    hows = ["complete", "fail", "retry", "next"] * 10
    jids = await client.queue("mail").put_many(
        NewJob(end, {"how": how}, jid=f"{how}-{n}") for n, how in enumerate(hows)
    )
    proxy.about, proxy.drop_firsts = b"EVAL", True
    async with Worker(
        proxied_client,
        end,
        settings=Settings(
            queues=("mail", "post"), poll=0.1, reconnect=ReconnectDelays(first=0.01, longest=0.02)
        ),
    ):
        await until(client.jobs.failed_counts, 30)

        async def through() -> bool:
            return {found.state for found in await client.jobs.multiget(*jids)} <= {
                "complete",
                "failed",
            }

        await until(through, 30)
        proxy.drop_firsts = False
    assert await client.jobs.failed_counts() == {"typo": 10}
    assert len(await client.jobs.complete_jids(count=100)) == 30
    assert ran == {jid: 2 if jid.startswith(("retry", "next")) else 1 for jid in jids}
    assert await client.check() == []


@pytest.mark.parametrize(
    ("command", "put"), [(row[0], row[2]) for row in OPERATIONS if row[1] in NEW], ids=NEW
)
async def test_put_whose_reply_was_lost_before_redis_was_full_is_not_reported_as_refused(
    own_server: OwnServer, monkeypatch: pytest.MonkeyPatch, command: str, put: Operation
) -> None:
    async with (
        Proxy(own_server.url) as proxy,
        namespace_pair(own_server.url, "good") as undisturbed,
        namespace_pair(proxy.url, "bad") as client,
    ):
        await undisturbed.redis.script_load(compose(command, "bad").text)
        answer = plain(await put(undisturbed))
        sleep = asyncio.sleep

        async def fill(seconds: float) -> None:
            await undisturbed.redis.config_set("maxmemory", 1)
            await sleep(seconds)

        monkeypatch.setattr(asyncio, "sleep", fill)
        proxy.about, proxy.drop = b"EVAL", 1
        assert plain(await put(client)) == answer
        monkeypatch.undo()
        assert await contents(client) == await contents(undisturbed)


async def test_put_that_never_arrived_is_refused_once_redis_is_full(
    own_server: OwnServer,
) -> None:
    async with (
        Proxy(own_server.url) as proxy,
        Client(proxy.url) as client,
        Client(own_server.url) as direct,
    ):
        await client.queue("mail").put("Greet")
        await direct.redis.config_set("maxmemory", 1)
        proxy.about, proxy.cut = b"EVAL", 1
        with pytest.raises(QueueFull):
            await client.queue("mail").put("Greet")
        assert proxy.cut == 0
        assert await direct.queue("mail").length() == 1


async def test_call_is_not_repeated_after_the_retry_window(
    client: Client, proxied_client: Client, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script_store, "RETRY_WINDOW", 0.3)
    proxy.about, proxy.delay, proxy.seconds = b"EVAL", 1, 30
    with pytest.raises(exceptions.TimeoutError):
        await proxied_client.queue("mail").put("Greet")
    assert proxy.delay == 0
    assert await client.queue("mail").length() <= 1
