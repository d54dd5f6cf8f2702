"""Workers of a test's own namespace, and their log lines."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias

import pytest

from aioqless import Client, Handler, Job, Settings, Worker, job
from tests.conftest import Until
from tests.server import OwnServer

Idle: TypeAlias = Callable[[Worker], Awaitable[None]]
Work: TypeAlias = Callable[..., AbstractAsyncContextManager[Worker]]


# Events that a machine logs when it stalls.
BUSY = ("worker.loop_blocked", "worker.loop_resumed", "worker.heartbeat_delayed")


class Lines(logging.Handler):
    """The log, line by line."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        assert isinstance(record.args, dict)
        self.all.append(dict(record.args, level=record.levelname.lower()))

    def of(self, event: str, **fields: Any) -> list[dict[str, Any]]:
        """Return the lines of an event that have these fields."""
        return [
            line for line in self.all if line["event"] == event and fields.items() <= line.items()
        ]


class Stay:
    """A handler that runs until it is released or stopped, and how it ended."""

    def __init__(self) -> None:
        self.began: list[Job[Any]] = []
        self.stopped: list[str] = []
        self.end = asyncio.Event()
        self.handler = job(klass="Stay")(self._stay)

    async def _stay(self, job: Job[Any]) -> None:
        self.began.append(job)
        try:
            await self.end.wait()
        except asyncio.CancelledError:
            self.stopped.append(job.jid)
            raise


@pytest.fixture
async def stay() -> Stay:
    return Stay()


@pytest.fixture
def lines() -> Iterator[Lines]:
    """Record the log while the test runs."""
    lines, logger = Lines(), logging.getLogger("aioqless")
    logger.addHandler(lines)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False  # pytest's own handler would format each line
    yield lines
    logger.propagate = True
    logger.setLevel(logging.NOTSET)
    logger.removeHandler(lines)


@pytest.fixture
async def killable_client(own_server: OwnServer) -> AsyncIterator[Client]:
    """Return a client of a server that will be killed."""
    async with Client(own_server.url) as client:
        yield client


@pytest.fixture
def idle(client: Client, until: Until) -> Idle:
    """Wait until a worker is idle: `await idle(worker)`.

    It has polled, has found nothing, and is subscribed to all its channels.
    """
    channels = [f"{client.namespace}:{name}" for name in ("log", "x:ready")]

    async def idle(worker: Worker) -> None:
        async def listens() -> bool:
            return all(
                listeners == 1 for _, listeners in await client.redis.pubsub_numsub(*channels)
            )

        await until(listens)
        await client.redis.ping()  # the effects of its subscription have started by then
        await until(lambda: worker.idle)

    return idle


@pytest.fixture
def work(client: Client, lines: Lines) -> Work:
    """Run a worker: `async with work(handler, poll=90) as worker`.

    It serves the queue `mail` and polls so rarely that only notifications wake it. Without a
    handler, it has one that no test uses.
    """

    @job(klass="Unused")
    async def unused(job: Job[Any]) -> None: ...

    @asynccontextmanager
    async def work(
        *handlers: Handler, name: str | None = None, using: Client | None = None, **settings: Any
    ) -> AsyncIterator[Worker]:
        given = {"queues": ("mail",), "poll": 90, "shutdown_timeout": 5, **settings}
        needed = [] if any(isinstance(each, Handler) for each in handlers) else [unused]
        async with Worker(
            using or client, *handlers, *needed, settings=Settings(**given), name=name
        ) as worker:
            yield worker

    return work
