"""The lock renewer under rare timing: stopped as it ends, and changes of the clock of Redis."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from redis import exceptions

from aioqless import Client, Job, job
from aioqless.store import ScriptStore
from aioqless.worker import watchdog
from aioqless.worker.lock_renewer import Callbacks, LockRenewer
from tests.conftest import Until
from tests.worker.conftest import Lines, Work

# The end of the renewer


async def send_nothing(_: ScriptStore) -> bool:
    """Send no beat."""
    return False


async def test_renewer_may_end_at_the_moment_when_it_is_stopped(
    client: Client,
) -> None:
    class EndingThread(tuple[Any, ...]):
        """Object that the renewer's thread removes while the worker's thread checks it."""

        def __bool__(self) -> bool:
            renewer._own = None
            return True

    running: dict[str, Any] = {"a": None}
    renewer = LockRenewer(
        client.internals.store, "ann", running, watchdog.LoopWatchdog(), 600, send_nothing
    )
    loop = asyncio.get_running_loop()
    stopped = loop.create_future()
    renewer._own = EndingThread((loop, stopped))
    renewer.stop()
    assert renewer._own is None
    renewer._own = EndingThread((loop, None))
    renewer.check("a")
    assert renewer._own is None


# Outages


async def test_redis_found_is_logged_only_after_a_reply(store: ScriptStore, until: Until) -> None:
    looks: list[int] = []  # how often Redis had been logged as available at each call
    found: list[float] = []

    async def ask(_: ScriptStore) -> bool:
        """Fail the first call; the next three send nothing, later ones are answered."""
        looks.append(len(found))
        if len(looks) == 1:
            raise exceptions.ConnectionError("away")
        return len(looks) > 4

    watched = watchdog.LoopWatchdog()
    watched.watch()
    renewer = LockRenewer(store, "ann", {}, watched, 600, send_beat=ask)
    beating = asyncio.create_task(
        renewer.run(
            Callbacks(
                lost=print, failed=lambda *_: None, answered=lambda: found.append(time.monotonic())
            )
        )
    )
    await until(lambda: found)
    renewer.stop()
    await beating
    assert looks == [0] * 5


# Redis' clock


@pytest.mark.parametrize("offset", [-600, 600], ids=["behind", "ahead"])
async def test_locks_are_renewed_on_schedule_after_the_clock_of_redis_changed(
    redis_url: str,
    namespace: str,
    work: Work,
    until: Until,
    lines: Lines,
    offset: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As when another server has taken over."""
    beats: list[float] = []
    renew = ScriptStore.heartbeat_many

    async def noted(store: ScriptStore, **arguments: Any) -> object:
        answers = await renew(store, **arguments)
        beats.append(time.monotonic())
        return answers

    monkeypatch.setattr(ScriptStore, "heartbeat_many", noted)
    off = 0.0
    end = asyncio.Event()

    @job(klass="Stay")
    async def stay(job: Job[Any]) -> None:
        await end.wait()

    async with Client(redis_url, namespace=namespace, clock=lambda: time.time() + off) as client:
        await client.config.set("heartbeat", 3)
        await client.queue("mail").put(stay, jid="a")
        async with work(stay, using=client):
            await until(lambda: len(beats) == 1)
            off = offset
            await until(lambda: len(beats) >= 6, 30)
            held = await client.jobs.get("a")
            end.set()
    assert (
        held and held.worker and held.expires > time.time() + off and not lines.of("job.lock_lost")
    )
    assert beats[5] - beats[0] > 3.0
