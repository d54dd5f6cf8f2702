"""This library and qless-py on one Redis at the same time."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from aioqless import AioqlessError, Client, Job, NewJob, Settings, Worker, job
from tests.conftest import Until

JIDS = [f"j{number}" for number in range(8)]
QUEUES = ["one", "two"]


class RandomOperations:
    """Executes random operations with one or the other client.

    Refusals are expected; other errors are not.
    """

    def __init__(self, ours: Client, peer: Any, chance: random.Random) -> None:
        self.ours, self.peer, self.chance = ours, peer, chance
        self.mine: dict[str, Job[Any]] = {}
        self.theirs: dict[str, Any] = {}

    async def step(self) -> None:
        chance = self.chance
        step = getattr(
            self,
            f"{chance.choice(['our', 'their'])}_{chance.choice(['put', 'pop', 'end', 'change'])}",
        )
        try:
            await step(chance.choice(JIDS), chance.choice(QUEUES))
        except (AioqlessError, ExceptionGroup):
            pass
        except Exception as refused:  # refusals by its script are plain errors
            assert type(refused).__name__ in ("QlessException", "LostLockException"), refused
            assert not any(
                bad in str(refused) for bad in ("attempt to", "bad argument", "nil value")
            ), refused

    def options(self, jid: str) -> dict[str, Any]:
        depends = self.chance.sample(
            [each for each in JIDS if each < jid], k=min(JIDS.index(jid), self.chance.randint(0, 2))
        )
        return {
            "jid": jid,
            "priority": self.chance.randint(-2, 2),
            "delay": self.chance.choice([0, 0, 0, 60]),
            "depends": depends,
        }

    async def our_put(self, jid: str, queue: str) -> None:
        await self.ours.queue(queue).put("Greet", {"n": []}, **self.options(jid))

    async def their_put(self, jid: str, queue: str) -> None:
        self.peer.queues[queue].put("Greet", {"n": []}, **self.options(jid))

    async def our_pop(self, jid: str, queue: str) -> None:
        self.mine |= {
            each.jid: each for each in await self.ours.queue(queue).pop(self.chance.randint(1, 3))
        }

    async def their_pop(self, jid: str, queue: str) -> None:
        self.theirs |= {
            each.jid: each for each in self.peer.queues[queue].pop(self.chance.randint(1, 3))
        }

    async def our_end(self, jid: str, queue: str) -> None:
        if held := self.mine.pop(jid, None):
            how = self.chance.choice(
                ["complete", "advance", "fail", "retry", "heartbeat", "release"]
            )
            match how:
                case "advance":
                    await held.complete(queue)
                case "fail":
                    await held.fail("why", group="broken")
                case _:
                    await getattr(held, how)()

    async def their_end(self, jid: str, queue: str) -> None:
        if held := self.theirs.pop(jid, None):
            match self.chance.choice(["complete", "advance", "fail", "retry", "heartbeat"]):
                case "advance":
                    held.complete(queue)
                case "fail":
                    held.fail("broken", "why")
                case how:
                    getattr(held, how)()

    async def our_change(self, jid: str, queue: str) -> None:
        job = await self.ours.jobs.get(jid)
        if job:
            match self.chance.choice(["timeout", "cancel", "move", "unfail", "priority", "tag"]):
                case "timeout":
                    await job.unlock()
                case "cancel":
                    await job.cancel()
                case "move":
                    await job.move(queue)
                case "unfail":
                    await self.ours.queue(queue).unfail("broken")
                case "priority":
                    await job.set_priority(self.chance.randint(-3, 3))
                case "tag":
                    await job.tag("red")

    async def their_change(self, jid: str, queue: str) -> None:
        job = self.peer.jobs[jid]
        if job:
            match self.chance.choice(["timeout", "cancel", "move", "unfail", "priority", "tag"]):
                case "timeout":
                    self.peer("timeout", jid)
                case "cancel":
                    self.peer("cancel", jid)
                case "move":
                    job.move(queue)
                case "unfail":
                    self.peer.unfail("broken", queue)
                case "priority":
                    job.priority = self.chance.randint(-3, 3)
                case "tag":
                    job.tag("red")


@pytest.mark.parametrize("seed", range(int(os.environ.get("AIOQLESS_LIVE_SEEDS", "12"))))
async def test_random_operations_of_both_clients_end_every_job(
    ours: Client, peer: Any, seed: int
) -> None:
    both = RandomOperations(ours, peer, random.Random(seed))
    for _ in range(150):
        await both.step()
    await _end_all(ours, peer)


async def _end_all(ours: Client, peer: Any) -> None:
    """Pop and complete every remaining job, by both clients in turn."""
    for jid in JIDS:
        if job := await ours.jobs.get(jid):
            match job.state:
                case "running":
                    await ours.jobs.unlock(jid)
                case "failed" | "scheduled" | "depends":
                    if job.state == "depends":
                        await job.undepend()
                    await job.move("one")
    for turn in range(100):
        if turn % 2:
            jobs = [each for queue in QUEUES for each in await ours.queue(queue).pop(2)]
            for mine in jobs:
                await mine.complete()
        else:
            jobs = [each for queue in QUEUES for each in peer.queues[queue].pop(2)]
            for theirs in jobs:
                theirs.complete()  # type: ignore[unused-coroutine]
        states = [job.state for job in await ours.jobs.multiget(*JIDS)]
        if set(states) <= {"complete"}:
            return
    raise AssertionError(states)


async def test_workers_of_both_clients_share_queues_and_run_each_job_once(
    ours: Client, peer: Any, live_url: str, tmp_path: Path, until: Until
) -> None:
    ran: list[str] = []

    @job(klass="tests.interop.peer.Note")
    async def note(job: Job[Any]) -> None:
        ran.append(job.jid)
        await asyncio.sleep(0.005)

    for queue in QUEUES:
        await ours.queue(queue).put_many(
            NewJob(note, {}, jid=f"our-{queue}-{n}") for n in range(100)
        )
        for n in range(100):
            peer.queues[queue].put("tests.interop.peer.Note", {}, jid=f"peer-{queue}-{n}")
    module, sandbox = Path(__file__).parents[2], str(tmp_path / "sandbox")
    command = (
        "-W",
        "ignore",
        "-m",
        "tests.interop.peer",
        live_url,
        "their-worker",
        ",".join(QUEUES),
        sandbox,
    )
    their_worker = await asyncio.create_subprocess_exec(sys.executable, *command, cwd=module)
    try:
        await until(
            lambda: peer.redis.llen("ran") > 0, 60
        )  # otherwise ours would be done before qless-py has started
        async with Worker(ours, note, settings=Settings(queues=tuple(QUEUES), concurrency=2)):
            await until(lambda: _all_complete(ours), 60)
    finally:
        their_worker.kill()
        await their_worker.wait()
    by_them = [line.split()[0] for line in peer.redis.lrange("ran", 0, -1)]
    assert Counter(ran + by_them).most_common(1)[0][1] == 1 and len(ran + by_them) == 400
    assert ran and by_them


async def _all_complete(client: Client) -> bool:
    return len(await client.jobs.complete_jids(count=1000)) == 400
