"""Every entry of the archive is in the lake exactly once, although processes are killed.

`python -m tests.contrib.lake.proof --jobs 200000 --kills 10` is the long form (`nox -s proof`), on
an object store; the tests run shorter ones.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import aioqless
from aioqless import Client, NewJob
from aioqless.client.archive import ArchiveState
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.schema import EVENTS, QUARANTINE
from aioqless.store import Keys
from tests.contrib.lake import proof_jobs
from tests.contrib.lake.archiver_process import ArchiverProcess, Target, wait_until
from tests.contrib.lake.killed_archiver import POINTS
from tests.contrib.lake.lake_readers import read_with_delta_rs, read_with_duckdb
from tests.contrib.lake.object_store import BUCKET, running_store
from tests.server import OwnServer

KLASSES: Final = {0: "staged", 1: "shaky", 2: "bad"}  # by the last digit; the others are quick
ENDS: Final = {"staged": ["advance", "complete"], "bad": ["fail"]}
NAMESPACE: Final = "{shop é%41} 1"
LAKE: Final = "my lake é {x}"
DAMAGED: Final = 3  # entries that are added to the stream with each portion of jobs
INTERVAL: Final = ("--every", "0.2")
SPARK: Final = ("--master", "local[2]")  # batches are small, and are written without it otherwise
EXECUTORS: Final = (
    "--master", "local-cluster[2,1,1024]", "--conf", "spark.executor.memory=1g",
)  # fmt: skip
Report: TypeAlias = Callable[[str], object]


@dataclass
class Proof:
    """What was done, and what was found."""

    jobs: int
    faults: Counter[str] = field(default_factory=Counter)
    entries: int = 0  # that Redis counted
    events: int = 0
    quarantined: int = 0
    files: int = 0
    versions: int = 0
    seconds: float = 0.0


class Scene:
    """A Redis with workers, a lake, and jobs that are put in portions."""

    def __init__(self, server: OwnServer, lake: str, jobs: int, portions: int) -> None:
        self.target = Target(server.url, NAMESPACE, lake)
        self.server = server
        self.jobs = jobs
        self.damaged = 0
        self.entries = max(100, jobs // 40)
        self._portions = _divide(jobs, portions)

    def archiver(self, *options: str, **more: Any) -> ArchiverProcess:
        return ArchiverProcess(self.target, "--entries", str(self.entries), *options, **more)

    def put_portion(self) -> None:
        asyncio.run(self.put(next(self._portions)))

    async def put(self, numbers: range) -> None:
        async with self._client() as client:
            jobs = (
                NewJob(_handler(number).klass, jid=f"j{number}", tags=["proof"])
                for number in numbers
            )
            await client.queue("work").put_many(jobs)
            for _ in range(DAMAGED):
                entry: dict[Any, Any] = {
                    "v": "1", "what": "complete", "jid": f"d{self.damaged}", "klass": "K",
                    "queue": "q", "ended": "99999999999",
                }  # fmt: skip
                await client.redis.xadd(Keys(client.internals.store.namespace)("archive"), entry)
                self.damaged += 1

    def put_rest(self) -> None:
        for numbers in self._portions:
            asyncio.run(self.put(numbers))

    def switch_archive_on(self) -> None:
        async def switch() -> None:
            async with self._client() as client:
                await client.config.set("archive", "on")

        asyncio.run(switch())

    def state(self) -> ArchiveState:
        async def ask() -> ArchiveState:
            async with self._client() as client:
                return await client.archive.state()

        return asyncio.run(ask())

    def expected_events(self) -> int:
        return sum(len(_ends(number)) for number in range(self.jobs))

    def _client(self) -> Client:
        return Client(self.server.url, namespace=NAMESPACE)

    @contextmanager
    def workers(self) -> Iterator[None]:
        """Run real workers, in two processes."""
        options = ["--url", self.server.url, "--namespace", NAMESPACE, "-w", "2"]
        queues = ["-q", "second", "-q", "work"]
        process = subprocess.Popen(
            [sys.executable, "-m", "aioqless", "worker", "tests.contrib.lake.proof_jobs",
             *options, *queues],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            yield
        finally:
            process.terminate()
            process.wait(60)


def prove(
    folder: Path,
    jobs: int,
    kills: int,
    *,
    seed: int,
    store: bool = True,
    all_faults: bool = True,
    finish: Callable[[Target, int], object] | None = None,
    report: Report = print,
) -> Proof:
    """Archive jobs while faults happen, and compare what programs read with what was put.

    Args:
        folder: A folder for Redis, and for the lake unless it is on an object store.
        jobs: The number of jobs.
        kills: How often an archiver is killed.
        seed: Of the random moments.
        store: Whether the lake is on an object store.
        all_faults: Whether executors and Redis are killed.
        finish: Archives what is left; another process does, unless given.
        report: Called with a line about each step.

    Raises:
        AssertionError: The lake isn't what it must be.
    """
    proof, chance, began = Proof(jobs), random.Random(seed), time.monotonic()
    server = OwnServer(folder)
    server.start()
    stored = running_store() if store else nullcontext[dict[str, str]]({})
    with stored as environment:
        os.environ.update(environment)
        lake = f"s3://{BUCKET}/{LAKE}" if store else str(folder / LAKE)
        scene = Scene(server, lake, jobs, kills + (5 if all_faults else 1))
        try:
            scene.switch_archive_on()
            with scene.workers():
                for number in range(kills):
                    _kill_archiver(scene, number, chance, proof, report)
                if all_faults:
                    for cause in (_kill_redis, _kill_executor):
                        cause(scene, chance, proof, report)
                scene.put_rest()
                expected = scene.expected_events() + scene.damaged
                wait_until(lambda: scene.state().added >= expected, 3600)
            finish = finish or _finish
            finish(scene.target, scene.entries)
            proof.entries = scene.state().added
            assert scene.state().length == 0, "what is in the lake is trimmed"
            versions = _versions(lake)
            finish(scene.target, scene.entries)
            assert _versions(lake) == versions, "archiving again changed something"
            report("reading back")
            _check(scene, proof)
        finally:
            server.kill()
            for name in environment:
                del os.environ[name]
    proof.seconds = round(time.monotonic() - began, 1)
    return proof


def _kill_archiver(
    scene: Scene, number: int, chance: random.Random, proof: Proof, report: Report
) -> None:
    """Kill an archiver at a random moment, or before, within or after a commit, in turn."""
    scene.put_portion()
    point = ("any moment", *POINTS)[(number + 2) % (len(POINTS) + 1)]
    options = (*INTERVAL, *(SPARK if number % 3 else ()))
    if point == "any moment":
        archiver = scene.archiver(*options)
        archiver.wait_for_batches(1)
        time.sleep(chance.uniform(0, 1.5))
        archiver.kill()
    else:
        program = ("-m", "tests.contrib.lake.killed_archiver", point, str(chance.randint(1, 4)))
        archiver = scene.archiver(*options, program=program)
        archiver.wait()
        assert archiver.process.returncode == -9, archiver.lines
    proof.faults[f"kill -9 of the archiver, {point}"] += 1
    report(f"killed no. {number + 1}, {point}, after {archiver.batches()} batches")


def _kill_redis(scene: Scene, chance: random.Random, proof: Proof, report: Report) -> None:
    archiver = scene.archiver(*INTERVAL)
    scene.put_portion()
    archiver.wait_for_batches(1)
    scene.server.kill()
    time.sleep(chance.uniform(0, 1))
    scene.server.start()
    seen = archiver.batches()
    scene.put_portion()
    archiver.wait_for_batches(seen + 1)
    assert archiver.stop() == 0, archiver.lines
    proof.faults["kill -9 of Redis"] += 1
    report("Redis was killed and started again")


def _kill_executor(scene: Scene, chance: random.Random, proof: Proof, report: Report) -> None:
    archiver = scene.archiver(*INTERVAL, *EXECUTORS)
    for _ in range(2):
        scene.put_portion()
        archiver.wait_for_batches(archiver.batches() + 1)
        time.sleep(chance.uniform(0, 0.5))
        assert archiver.kill_executor()
        proof.faults["kill -9 of an executor"] += 1
        seen = archiver.batches()
        asyncio.run(scene.put(range(0)))
        archiver.wait_for_batches(seen + 1)
    assert archiver.stop() == 0, archiver.lines
    report("executors were killed")


def _finish(target: Target, entries: int) -> None:
    archiver = ArchiverProcess(target, "--entries", str(entries))
    assert archiver.wait(3600) == 0, archiver.lines


def _divide(jobs: int, count: int) -> Iterator[range]:
    """Yield the numbers of the jobs in so many portions."""
    for part in range(count):
        yield range(jobs * part // count, jobs * (part + 1) // count)


def _klass(number: int) -> str:
    return KLASSES.get(number % 10, "quick")


def _handler(number: int) -> aioqless.Handler:
    handler: aioqless.Handler = getattr(proof_jobs, _klass(number))
    return handler


def _ends(number: int) -> list[str]:
    return ENDS.get(_klass(number), ["complete"])


def _versions(lake: str) -> dict[str, int]:
    return {name: Lake(lake).table(name).version for name in (EVENTS, QUARANTINE)}


def _check(scene: Scene, proof: Proof) -> None:
    lake = Lake(scene.target.lake)
    snapshot = lake.table(EVENTS)
    proof.files, proof.versions = len(snapshot.all_files), snapshot.version
    events = read_with_delta_rs(lake, EVENTS)
    assert read_with_duckdb(lake, EVENTS) == events, "DuckDB reads other rows than delta-rs"
    columns = ("ordinal", "raw")
    rejected = read_with_delta_rs(lake, QUARANTINE, columns)
    assert read_with_duckdb(lake, QUARANTINE, columns) == rejected
    proof.events, proof.quarantined = len(events), len(rejected)

    ordinals = sorted(row[0] for row in (*events, *rejected))
    assert ordinals == list(range(1, proof.entries + 1)), "an entry is missing or there twice"
    assert len({row[1] for row in events}) == proof.events == scene.expected_events()
    assert {row[4] for row in events} == {NAMESPACE}
    jids = sorted(json.loads(raw)["jid"] for _, raw in rejected)
    assert jids == sorted(f"d{number}" for number in range(scene.damaged))
    _check_ends(proof.jobs, events)
    runs = read_with_delta_rs(lake, EVENTS, ("jid", "fence"))
    shaken = [fence for jid, fence in runs if int(jid[1:]) % 10 == 1]
    assert min(shaken) >= 2, "a retry is a run of its own"


def _check_ends(jobs: int, events: Sequence[tuple[Any, ...]]) -> None:
    ends: dict[str, list[str]] = {}
    for _, _, jid, what, _ in events:
        ends.setdefault(jid, []).append(what)
    wrong = [
        (number, ends.get(f"j{number}"))
        for number in range(jobs)
        if ends.get(f"j{number}") != _ends(number)
    ]
    assert not wrong, f"{len(wrong)} jobs ended otherwise than the lake has it: {wrong[:5]}"


def _print(line: str) -> None:
    print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="nox -s proof --", description=__doc__)
    parser.add_argument("--jobs", type=int, default=200_000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 100_000)
    parser.add_argument("--folder", action="store_true", help="a lake in a folder")
    options = parser.parse_args()
    _print(f"seed {options.seed}")
    with tempfile.TemporaryDirectory(prefix="aioqless-proof-") as folder:
        proof = prove(
            Path(folder), options.jobs, options.kills, seed=options.seed,
            store=not options.folder, report=_print,
        )  # fmt: skip
    print(json.dumps(vars(proof), indent=2))


if __name__ == "__main__":
    main()
