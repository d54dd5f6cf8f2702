"""A worker in the lifespan of a web service."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import litestar
import pytest
from litestar.testing import TestClient
from redis import exceptions
from redis.asyncio import Redis

from aioqless import AioqlessError, Client, Handler, Inject, Job, Settings, Worker, job, resource
from aioqless.handlers import Resource
from tests.conftest import Until, existing_job
from tests.embedding.hosts import Host, serve
from tests.server import OwnServer
from tests.worker.conftest import Lines

began: list[str] = []
go: list[asyncio.Event] = []


@pytest.fixture(autouse=True)
def fresh() -> None:
    began.clear()
    go[:] = [asyncio.Event()]


@job(klass="Greet")
async def greet(job: Job[Any]) -> None:
    began.append(job.jid)
    await go[0].wait()


class Pool: ...


class App:
    """A worker in a lifespan, and the handling of a request."""

    def __init__(
        self,
        client: Client,
        *declared: Handler | Resource,
        queues: tuple[str, ...] = ("mail",),
        **settings: Any,
    ) -> None:
        self.client = client
        self.settings = {"queues": queues, "poll": 90, "shutdown_timeout": 10, **settings}
        self.declared = declared or (greet,)
        self.worker: Worker | None = None
        self.left: BaseException | None = None  # the exception that left the worker's block

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        try:
            async with Worker(
                self.client, *self.declared, settings=Settings(**self.settings)
            ) as self.worker:
                yield
        except BaseException as error:
            self.left = error
            raise

    async def put(self) -> str:
        return await self.client.queue("mail").put("Greet")

    @property
    def healthy(self) -> bool:
        return self.worker is not None and self.worker.healthy


async def put(host: Host) -> str:
    async with httpx.AsyncClient(trust_env=False) as http:
        answer = await http.post(host.url)
    assert answer.is_success
    return answer.text


async def answers(host: Host) -> bool:
    async with httpx.AsyncClient(trust_env=False) as http:
        return (await http.get(host.url)).text == "here"


async def state_of(client: Client, jid: str) -> str:
    found = await existing_job(client, jid)
    return str(found.state)


async def test_job_of_a_request_runs_in_the_same_process_and_shutdown_drains(
    client: Client, until: Until, lines: Lines
) -> None:
    app = App(client)
    before = len(asyncio.all_tasks())
    async with serve(app.lifespan, app.put) as running:
        jid = await put(running)
        await until(lambda: began == [jid])
        stopping = asyncio.create_task(running.stop())
        await until(lambda: lines.of("worker.shutdown_started", running=1))
        assert app.healthy and not stopping.done()
        go[0].set()
        await stopping
    assert not app.healthy and app.left is None
    assert await state_of(client, jid) == "complete"
    await until(lambda: len(asyncio.all_tasks()) == before)


async def test_unfinished_job_is_released_before_the_server_ends(
    client: Client, until: Until
) -> None:
    app = App(client, shutdown_timeout=0.05)
    async with serve(app.lifespan, app.put) as running:
        jid = await put(running)
        await until(lambda: began == [jid])
        await running.stop()
    assert await state_of(client, jid) == "waiting"


async def test_host_serves_requests_after_its_worker_crashed(
    client: Client, until: Until, lines: Lines
) -> None:
    @resource
    async def broken() -> AsyncIterator[Pool]:
        raise ConnectionError("no database")
        yield

    app = App(client, greet, broken)
    async with serve(app.lifespan, app.put) as running:
        await until(lambda: not app.healthy)
        assert lines.of("worker.crashed") and await answers(running)
        assert await state_of(client, await put(running)) == "waiting"
        await running.stop()
    assert isinstance(app.left, ConnectionError)


async def test_shutdown_does_not_wait_for_a_resource_to_open(
    client: Client, until: Until, lines: Lines
) -> None:
    closed: list[str] = []

    @resource
    async def first() -> AsyncIterator[App]:
        try:
            yield App(client)
        finally:
            closed.append("first")

    @resource
    async def silent(first: App = Inject) -> AsyncIterator[Pool]:
        closed.append("not yet")
        await asyncio.Event().wait()
        yield Pool()

    app = App(client, greet, first, silent)
    async with serve(app.lifespan, app.put) as running:
        jid = await put(running)
        await until(lambda: closed)
        await asyncio.wait_for(running.stop(), 60)
    assert (
        closed == ["not yet", "first"]
        and app.left is None
        and await state_of(client, jid) == "waiting"
    )


async def test_sys_exit_in_a_resource_ends_the_worker_and_not_the_host(
    client: Client, until: Until, lines: Lines
) -> None:
    @resource
    async def unset() -> AsyncIterator[Pool]:
        sys.exit("DATABASE is not set")
        yield

    app = App(client, greet, unset)
    async with serve(app.lifespan, app.put) as running:
        await until(lambda: not app.healthy)
        assert await answers(running)
        await running.stop()
    assert isinstance(app.left, AioqlessError) and "DATABASE is not set" in str(app.left)
    assert lines.of("worker.crashed")


async def test_worker_ends_if_its_password_has_never_worked(
    own_server: OwnServer, until: Until, lines: Lines
) -> None:
    async with Redis.from_url(own_server.url) as operator, Client(own_server.url) as client:
        await operator.config_set("requirepass", "secret")
        app = App(client)
        async with serve(app.lifespan, app.put) as running:
            await until(lambda: not app.healthy)
            assert await answers(running)
            await running.stop()
        assert isinstance(app.left, exceptions.AuthenticationError)
        assert "refused this client" in str(app.left) and lines.of("worker.crashed")


async def test_host_serves_requests_while_the_worker_retries_a_password_that_has_worked(
    own_server: OwnServer, until: Until, lines: Lines
) -> None:
    async with Redis.from_url(own_server.url) as operator, Client(own_server.url) as client:
        app = App(client)
        async with serve(app.lifespan, app.put) as running:
            await until(lambda: app.worker and app.worker.ready)
            await operator.config_set("requirepass", "secret")
            await operator.client_kill_filter(_type="normal", skipme=True)
            await until(lambda: lines.of("worker.redis_lost"))
            assert app.worker and app.healthy and not app.worker.ready
            assert await answers(running)
            await operator.config_set("requirepass", "")
            await until(lambda: app.worker and app.worker.ready)
            jid = await put(running)
            await until(lambda: began == [jid])
            go[0].set()


async def test_worker_in_a_host_installs_no_signal_handlers(client: Client, until: Until) -> None:
    def theirs(*_: object) -> None: ...

    loop, known = (
        asyncio.get_running_loop(),
        (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGUSR1),
    )
    loop.add_signal_handler(signal.SIGTERM, theirs)
    signal.signal(signal.SIGHUP, theirs)
    try:
        before = [signal.getsignal(each) for each in known]
        hook = sys.excepthook, threading.excepthook, loop.get_exception_handler()
        async with Worker(client, greet, settings=Settings(queues=("mail",))):
            jid = await client.queue("mail").put(greet)
            await until(lambda: began == [jid])
            assert [signal.getsignal(each) for each in known] == before
            go[0].set()
        assert [signal.getsignal(each) for each in known] == before
        assert (sys.excepthook, threading.excepthook, loop.get_exception_handler()) == hook
        assert loop.remove_signal_handler(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


async def test_canceled_anyio_scope_releases_running_jobs(client: Client, until: Until) -> None:
    async def host() -> None:
        async with Worker(client, greet, settings=Settings(queues=("mail",), shutdown_timeout=30)):
            await anyio.sleep_forever()

    jid = await client.queue("mail").put(greet)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(host)
        await until(lambda: began == [jid])
        tasks.cancel_scope.cancel()
    assert await state_of(client, jid) == "waiting"


async def test_host_can_cancel_a_drain(client: Client, until: Until, lines: Lines) -> None:
    async def host() -> None:
        async with Worker(client, greet, settings=Settings(queues=("mail",), shutdown_timeout=30)):
            await until(lambda: began == [jid])

    jid = await client.queue("mail").put(greet)
    with anyio.move_on_after(30) as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(host)
            await until(lambda: lines.of("worker.shutdown_started"))
            scope.cancel()
    assert scope.cancelled_caught and await state_of(client, jid) == "waiting"


async def test_exception_of_the_host_is_not_hidden_by_its_worker(
    client: Client, until: Until
) -> None:
    @resource
    async def broken() -> AsyncIterator[Pool]:
        raise ConnectionError("no database")
        yield

    with pytest.raises(LookupError):
        async with Worker(client, greet, broken) as worker:
            await until(lambda: not worker.healthy)
            raise LookupError


async def test_two_workers_in_one_host_serve_their_own_queues(client: Client, until: Until) -> None:
    first, second = App(client), App(client, queues=("reports",))

    @asynccontextmanager
    async def both() -> AsyncIterator[None]:
        async with first.lifespan(), second.lifespan():
            yield

    async with serve(both, first.put) as running:
        jids = {await put(running), await client.queue("reports").put("Greet")}
        await until(lambda: set(began) == jids)
        assert first.worker and second.worker
        assert len(first.worker.running) == len(second.worker.running) == 1
        go[0].set()
    assert {await state_of(client, jid) for jid in jids} == {"complete"}


def test_application_works_with_the_test_client_of_its_framework(
    redis_url: str, namespace: str
) -> None:
    """The test client runs the lifespan on anyio's event loop in a thread."""

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        go[:] = [asyncio.Event()]
        go[0].set()
        async with Client(redis_url, namespace=namespace) as app.client, app.lifespan():
            yield

    @litestar.post("/", media_type=litestar.MediaType.TEXT)
    async def put_and_wait() -> str:
        return str((await app.client.jobs.wait(await app.put(), timeout=60)).state)

    app = App(Client(redis_url, namespace=namespace))
    with TestClient(litestar.Litestar([put_and_wait], lifespan=[lambda app: lifespan()])) as http:
        assert http.post("/").text == "complete"
    assert app.left is None and not app.healthy
