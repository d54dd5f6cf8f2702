"""Failover to a replica with another clock: effects on locks, delays, and late results."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from aioqless import Client, Job, LockLost, Settings, Worker, job
from tests.client.proxy import Proxy
from tests.programs import find
from tests.server import free_port
from tests.servers.processes import (
    wheel,
)  # Debian's Redis cannot run under libfaketime: its jemalloc is incompatible with it

HEARTBEAT, GRACE, DELAY = (
    12.0,
    2.0,
    6.0,
)  # the lock is renewed after 4 s: later than the grace period, as by default
LIVE = 10
OFFSETS = (-600.0, -30.0, 0.0, 30.0, 600.0)


@dataclass(eq=False)
class FailoverResult:
    """The effects of a failover to a clock `offset` seconds ahead.

    Times are from the moment when the replica took over.
    """

    offset: float
    live_again: int = 0  # running jobs that were started a second time
    live_done: int = 0
    dead_back: float | None = (
        None  # when the job of the killed worker started again; None: not within the observed time
    )
    dead_due: float = 0.0  # when its lock expires, by the new clock
    delayed: float | None = None  # when a job started that had a delay of `DELAY` seconds
    late_refused: bool = False  # whether the result of the killed worker's run was refused


@asynccontextmanager
async def redis_server(
    folder: Path, *options: str, clock: float = 0, clock_file: Path | None = None
) -> AsyncIterator[tuple[Redis, subprocess.Popen[bytes], str]]:
    """Start a server whose clock is `clock` s ahead, or as far as a file says at any time."""
    port = free_port()
    environment = dict(os.environ)
    if (clock or clock_file) and (library := find("faketime")):
        environment |= {
            "LD_PRELOAD": library,
            **(
                {"FAKETIME_TIMESTAMP_FILE": str(clock_file), "FAKETIME_NO_CACHE": "1"}
                if clock_file
                else {"FAKETIME": f"{clock:+}"}
            ),
            "DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
    command = [
        str(wheel().path),
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--dir",
        str(folder),
        "--save",
        "",
        *options,
    ]
    with (folder / f"{port}.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log)  # noqa: ASYNC220  it doesn't wait for it
    try:
        async with Redis.from_url(f"redis://127.0.0.1:{port}") as redis:
            await _until(redis.ping)
            yield redis, process, str(port)
    finally:
        process.kill()
        process.wait()


async def _until(asked: Any, patience: float = 60.0) -> None:
    async with asyncio.timeout(patience):
        while True:
            try:
                if await asked():
                    return
            except RedisError:
                pass
            await asyncio.sleep(0.02)


class Handlers:
    """The handlers: they record when each job started, and wait until all may end."""

    def __init__(self) -> None:
        self.began: dict[str, list[float]] = {}
        self.done: Counter[str] = Counter()
        self.end = asyncio.Event()

        @job(klass="Live")
        async def live(job: Job[Any]) -> None:
            self.began.setdefault(job.jid, []).append(time.monotonic())
            await self.end.wait()
            self.done[job.jid] += 1

        @job(klass="Note")
        async def note(job: Job[Any]) -> None:
            self.began.setdefault(job.jid, []).append(time.monotonic())

        self.handlers = (live, note)


async def measure(offset: float, watch: float = 9.0) -> FailoverResult:
    """Fail over to a replica whose clock is `offset` s ahead, and observe it for `watch` s."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="aioqless-clocks-")))
        master, process, port = await stack.enter_async_context(redis_server(folder))
        replica, _, other = await stack.enter_async_context(
            redis_server(
                folder,
                "--dbfilename",
                "replica.rdb",
                "--replicaof",
                "127.0.0.1",
                port,
                clock=offset,
            )
        )
        await _until(lambda: _linked(replica))
        proxy = await stack.enter_async_context(Proxy(f"redis://127.0.0.1:{port}"))
        client = await stack.enter_async_context(Client(proxy.url))
        watched, gone = Handlers(), await _prepare(client)
        await stack.enter_async_context(
            Worker(
                client, *watched.handlers, settings=Settings(queues=("mail",), shutdown_timeout=5)
            )
        )
        await _until(lambda: _all_began(watched))
        await master.wait(1, 5000)
        process.kill()
        await replica.replicaof("NO", "ONE")
        proxy.upstream = f"redis://127.0.0.1:{other}"
        proxy.cut_off()
        took_over = time.monotonic()
        taken = FailoverResult(offset, dead_due=gone.expires - await _now(replica))
        await asyncio.sleep(watch)
        if offset > HEARTBEAT:  # by the new clock, the lock of the killed worker has expired

            async def is_back() -> bool:
                return "dead" in watched.began

            await _until(is_back)
        await _read(taken, watched, took_over)
        taken.late_refused = await _refused(gone) if taken.dead_back is not None else False
        watched.end.set()
        await _until(lambda: _complete(client))
        taken.live_done = sum(watched.done.values())
        return taken


async def _prepare(client: Client) -> Job:
    """Put the jobs that exist at the failover; returns the job of the killed worker."""
    for option, value in {"heartbeat": HEARTBEAT, "grace-period": GRACE}.items():
        await client.config.set(option, value)
    mail = client.queue("mail")
    await mail.put("Note", jid="dead")
    (gone,) = await mail.pop(worker="gone")
    for number in range(LIVE):
        await mail.put("Live", jid=f"live-{number}")
    await mail.put("Note", jid="delayed", delay=DELAY)
    return gone


async def _linked(replica: Redis) -> bool:
    return bool((await replica.info("replication"))["master_link_status"] == "up")


async def _all_began(watched: Handlers) -> bool:
    return len(watched.began) == LIVE


async def _now(redis: Redis) -> float:
    seconds, microseconds = await redis.time()
    return float(seconds) + microseconds / 1e6


async def _complete(client: Client) -> bool:
    states = [
        found.state
        for found in await client.jobs.multiget(*(f"live-{number}" for number in range(LIVE)))
    ]
    return states == ["complete"] * LIVE


async def _read(taken: FailoverResult, watched: Handlers, took_over: float) -> None:
    taken.live_again = sum(
        len(times) - 1 for jid, times in watched.began.items() if jid.startswith("live")
    )
    for jid, name in (("dead", "dead_back"), ("delayed", "delayed")):
        if times := watched.began.get(jid):
            setattr(taken, name, times[0] - took_over)


async def _refused(gone: Job) -> bool:
    try:
        await gone.complete()
    except Exception as refused:
        return isinstance(refused, LockLost) or "not running" in str(refused)
    return False
