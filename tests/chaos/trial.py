"""One trial: faults of one kind strike repeatedly under load.

Then the remaining jobs are drained, and the ledger is compared with Redis.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from redis.exceptions import RedisError

from aioqless import Client
from aioqless.client.queue_statistics import QueueOverview
from aioqless.errors import AioqlessError
from tests.chaos.faults import KINDS, TOGETHER, Kind, Stage
from tests.chaos.ledger import Ledger, read
from tests.chaos.processes import Processes
from tests.chaos.readers import Readers
from tests.chaos.server import Server
from tests.chaos.verdict import Verdict, judge
from tests.programs import find

ROLL_CALLS = 10  # a worker that was just restarted may miss some


@dataclass(frozen=True)
class Plan:
    """The size of a trial: `strikes` of each kind while `rate` jobs per second are put.

    At least `jobs` are put. Locks last `heartbeat` seconds and a grace period of `grace` seconds.
    """

    strikes: int = 21
    rate: float = 240.0
    jobs: int = 6_000
    workers: int = 3
    heartbeat: float = 2.0
    grace: float = 1.0
    patience: float = 120.0  # for draining the remaining jobs
    haste: float = 1.0  # factor for the pauses between strikes


async def run_trial(kind: Kind, plan: Plan, seed: int, *, keep: bool = False) -> Verdict:
    """Run a trial and return its verdict.

    The files of the processes are kept when something was wrong, or if `keep` is true.
    """
    folder = Path(tempfile.mkdtemp(prefix=f"aioqless-chaos-{kind.name}-"))
    async with _stage(kind, plan, folder, random.Random(f"{seed} {kind.name}")) as stage:
        struck = await _strike(kind, plan, stage)
        await stage.processes.stop_role("producer")
        await stage.end_faults()
        left = await drain(stage.client, plan.patience)
        unread = await stage.readers.end(plan.patience)
        absent = await _wait_for_all_workers(stage, folder)
        await stage.processes.stop_role("worker")
        verdict = await judge(
            stage.client, read(folder), struck, plan.heartbeat, plan.grace, named=kind.named
        )
    verdict.wrong += [f"{member} is there and takes no jobs" for member in absent]
    verdict.wrong += [f"{unread} readers of output have not read to its end"] if unread else []
    if verdict.dropped and not kind.refuses:
        verdict.wrong.append(f"{verdict.dropped} values of output were dropped")
    if kind.name == "end-in-cursor" and (verdict.repeated or not verdict.parked):
        verdict.wrong.append(
            f"{verdict.parked} loops of cursors were left, {verdict.repeated} items done twice"
        )
    if kind.name == "lose-log" and not _dropped_lines_are_logged(folder):
        verdict.wrong.append("no log says that lines of it were dropped")
    if kind.clocks and kind is not TOGETHER and verdict.astray < 60:
        verdict.wrong.append(f"no two clocks differed by more than {verdict.astray:.0f} s")
    verdict.wrong += stage.processes.ends + (
        [f"not worked off within {plan.patience:.0f} s: {left}"] if left else []
    )
    if verdict.wrong or keep:
        print(f"{kind.name}: what the processes wrote is in {folder}", file=sys.stderr)
    else:
        shutil.rmtree(folder)
    return verdict


@asynccontextmanager
async def _stage(
    kind: Kind, plan: Plan, folder: Path, chance: random.Random
) -> AsyncIterator[Stage]:
    server = Server(folder / "redis")
    await server.start()
    processes = Processes(folder, chance, piped=kind.piped)
    line = _ProxyProcess(server.url) if kind.through else None
    keeper = asyncio.create_task(processes.keep())
    try:
        async with Client(server.url) as client, Client(server.url, name="reader") as reader:
            for option, value in {
                "heartbeat": plan.heartbeat,
                "grace-period": plan.grace,
                "max-lost": kind.max_lost,
            }.items():
                await client.config.set(option, value)
            await client.config.set("jobs-history-count", 10_000_000)
            fake = find("faketime") if kind.clocks else None
            url = line.url if line else server.url
            for number in range(plan.workers):
                processes.add_worker(url, fake, f"stable-{number}" if kind.named else None)
            for _ in range(2):
                processes.add_producer(url, plan.rate / 2, fake)
            ledger = Ledger(folder, "stage")
            yield Stage(
                server,
                processes,
                client,
                ledger,
                chance,
                plan.heartbeat,
                plan.grace,
                Readers(reader, ledger, chance),
                line.to if line else None,
            )
    finally:
        keeper.cancel()
        processes.kill_all()
        if line:
            line.end()
        server.kill()


class _ProxyProcess:
    """The proxy's process."""

    def __init__(self, upstream: str) -> None:
        command = [sys.executable, "-m", "tests.chaos.proxy_process", upstream]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin and self._process.stdout
        self.to = self._process.stdin
        self.url = f"redis://127.0.0.1:{int(self._process.stdout.readline())}"

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


async def _strike(kind: Kind, plan: Plan, stage: Stage) -> list[float]:
    """Let the fault strike at random times under load; returns these times."""
    struck: list[float] = []
    await flow(stage.client)
    began = time.monotonic()
    for _ in range(plan.strikes):
        await asyncio.sleep(stage.chance.uniform(0.5, 1.5) * kind.pause * plan.haste)
        struck.append(time.monotonic())
        await (_any_of_all if kind is TOGETHER else kind.strike)(stage)
    await asyncio.sleep(max(0.0, began + plan.jobs / plan.rate - time.monotonic()))
    return struck


async def flow(client: Client) -> None:
    """Wait until the first job is complete."""
    async with client.events() as events:
        async for event in events:
            if event.kind == "completed":
                return


def _dropped_lines_are_logged(folder: Path) -> bool:
    return any("log.lines_dropped" in log.read_text() for log in folder.glob("worker-*.log"))


async def _any_of_all(stage: Stage) -> None:
    """Use two kinds at once: one of them may prevent the other from having an effect."""
    kinds = stage.chance.sample([kind for kind in KINDS if not kind.alone], 2)
    for answer in await asyncio.gather(
        *(each.strike(stage) for each in kinds), return_exceptions=True
    ):
        if isinstance(answer, BaseException) and not isinstance(answer, RedisError | OSError):
            raise answer


async def _wait_for_all_workers(stage: Stage, folder: Path) -> list[str]:
    """Put enough work for all workers until each has run a job; those that never do are broken."""
    since = time.monotonic()
    absent: list[str] = []
    for _ in range(ROLL_CALLS):
        await stage.add("slow", 0.3, count=40 * len(stage.processes.of("worker")))
        await drain(stage.client, 30)
        at_work = {
            note.values[5] for note in read(folder) if note.what == "start" and note.at > since
        }
        members = [member for member in stage.processes.of("worker") if member.process]
        absent = [
            f"worker {member.number}"
            for member in members
            if member.process and member.process.pid not in at_work
        ]
        if not absent:
            break
    return absent


async def drain(client: Client, patience: float) -> list[str]:
    """Wait until no job waits or runs, and no note is due; returns what is left after the timeout.

    A job with dependencies is unblocked in the same step that ends the last of them. If a
    dependency has failed, its dependents stay. What a failure puts is noted: a tick does it if its
    client was killed, or refused by a full disk.
    """
    left: list[str] = []
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        try:
            notes = await client.redis.zcount(f"{client.namespace}:x:agenda", "-inf", time.time())
            queues = await client.queues()
        except (RedisError, AioqlessError):
            notes, queues = 0, [QueueOverview(name="?", waiting=1)]
        left = [
            f"{queue.name}: {queue}"
            for queue in queues
            if any(getattr(queue, state) for state in STATES)
        ]
        left += [f"{notes} notes are due"] * bool(notes)
        if not left:
            break
        await asyncio.sleep(0.2)
    return left


STATES = ("waiting", "running", "stalled", "scheduled")
