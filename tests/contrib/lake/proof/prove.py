"""Every entry of the archive is in the lake exactly once, although processes are killed.

`python -m tests.contrib.lake.proof.prove --jobs 200000 --kills 10` is the long form
(`nox -s proof`), on an object store; the tests run shorter ones.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final, TypeVar

import aioqless
from aioqless import Client, NewJob
from aioqless.client.archive import ArchiveState
from aioqless.contrib.lake.archiver import Archiver
from aioqless.contrib.lake.lake import Lake
from aioqless.contrib.lake.schema import EVENTS, QUARANTINE
from aioqless.store import Keys
from tests.contrib.lake.lakes import ask, open_session, raw
from tests.contrib.lake.proof import jobs as handlers
from tests.contrib.lake.proof.killed_archiver import POINTS
from tests.contrib.lake.servers import BUCKET, running_store
from tests.server import OwnServer

Result = TypeVar("Result")

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


class ArchiverProcess:
    """An archiver in a process of its own, whose output is kept."""

    def __init__(
        self, arguments: Iterable[str], program: Iterable[str] = ("-m", "aioqless")
    ) -> None:
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, *program, "lake", "archive", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        self._listener = threading.Thread(target=self._listen)
        self._listener.start()

    def _listen(self) -> None:
        assert self.process.stdout
        with self.process.stdout as output:
            self.lines.extend(line.rstrip() for line in output)

    def batches(self) -> int:
        """The number of batches that it reported."""
        return sum(line.startswith("batch up to entry") for line in list(self.lines))

    def wait_for_batches(self, number: int) -> None:
        wait_until(lambda: self.batches() >= number or self.process.poll() is not None, 900)
        assert self.process.poll() is None, self.lines[-20:]

    def end(self, by: signal.Signals | None = None) -> int:
        """Wait until it ended, by a signal if one is given; return the exit code."""
        if by is not None:
            self.process.send_signal(by)
        code = self.process.wait(900)
        self._listener.join()
        return code

    def kill_executor(self) -> None:
        """Kill one of its executors, which are processes of its session."""
        search = ["pgrep", "-s", str(self.process.pid), "-f", "CoarseGrainedExecutorBackend"]
        found = subprocess.run(search, capture_output=True, text=True, check=True)
        os.kill(int(found.stdout.split()[0]), signal.SIGKILL)


def wait_until(condition: Callable[[], object], timeout: float) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"waited for {timeout} s in vain"
        time.sleep(0.05)


class Scene:
    """A Redis with workers, a lake, and jobs that are put in portions."""

    def __init__(
        self, server: OwnServer, lake: str, jobs: int, portions: int, chance: random.Random
    ) -> None:
        self.server = server
        self.lake = lake
        self.jobs = jobs
        self.chance = chance
        self.faults = Counter[str]()
        self.damaged = 0
        self._entries = max(100, jobs // 40)
        self._source = ("--url", server.url, "--namespace", NAMESPACE, "--lake", lake)
        cuts = [jobs * part // portions for part in range(portions + 1)]
        self._portions = map(range, cuts, cuts[1:])

    def ask(self, act: Callable[[Client], Awaitable[Result]]) -> Result:
        return ask(act, self.server.url, NAMESPACE)

    def archiver(self, *options: str, **more: Any) -> ArchiverProcess:
        return ArchiverProcess([*self._source, "--entries", str(self._entries), *options], **more)

    def archive_rest(self) -> None:
        lake = Lake(self.lake, create=True)
        Archiver(lake, open_session, self.server.url, NAMESPACE, entries=self._entries).once()

    def put_portion(self) -> None:
        self.put(next(self._portions))

    def put_rest(self) -> None:
        for numbers in self._portions:
            self.put(numbers)

    def put(self, numbers: range) -> None:
        async def put(client: Client) -> None:
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

        self.ask(put)

    def state(self) -> ArchiveState:
        return self.ask(lambda client: client.archive.state())

    def expected_events(self) -> int:
        return sum(len(_ends(number)) for number in range(self.jobs))

    @contextmanager
    def workers(self) -> Iterator[None]:
        """Run real workers, in two processes."""
        options = ["--url", self.server.url, "--namespace", NAMESPACE, "-w", "2"]
        queues = ["-q", "second", "-q", "work"]
        process = subprocess.Popen(
            [sys.executable, "-m", "aioqless", "worker", "tests.contrib.lake.proof.jobs",
             *options, *queues],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            yield
        finally:
            process.terminate()
            process.wait(60)


def prove(
    folder: Path, jobs: int, kills: int, *, seed: int, store: bool = True, all_faults: bool = True
) -> dict[str, Any]:
    """Archive jobs while faults happen, and compare what is read back with what was put.

    Return the numbers of what was done and found.

    Args:
        folder: A folder for Redis, and for the lake unless it is on an object store.
        jobs: The number of jobs.
        kills: How often an archiver is killed.
        seed: Of the random moments.
        store: Whether the lake is on an object store.
        all_faults: Whether executors and Redis are killed.

    Raises:
        AssertionError: The lake isn't what it must be.
    """
    server = OwnServer(folder)
    server.start()
    stored = running_store(folder / "store.log") if store else nullcontext[dict[str, str]]({})
    with stored as environment:
        os.environ.update(environment)
        lake = f"s3://{BUCKET}/{LAKE}" if store else str(folder / LAKE)
        scene = Scene(server, lake, jobs, kills + (5 if all_faults else 1), random.Random(seed))
        try:
            scene.ask(lambda client: client.config.set("archive", "on"))
            with scene.workers():
                for number in range(kills):
                    _kill_archiver(scene, number)
                if all_faults:
                    _kill_redis(scene)
                    _kill_executors(scene)
                scene.put_rest()
                expected = scene.expected_events() + scene.damaged
                wait_until(lambda: scene.state().added >= expected, 3600)
            scene.archive_rest()
            assert scene.state().length == 0, "what is in the lake is trimmed"
            versions = _versions(lake)
            scene.archive_rest()
            assert _versions(lake) == versions, "archiving again changed something"
            return _check(scene)
        finally:
            server.kill()
            for name in environment:
                del os.environ[name]


def _kill_archiver(scene: Scene, number: int) -> None:
    """Kill an archiver at a random moment, or before, within or after a commit, in turn."""
    scene.put_portion()
    point = ("any moment", *POINTS)[(number + 2) % (len(POINTS) + 1)]
    options = (*INTERVAL, *(SPARK if number % 3 else ()))
    if point == "any moment":
        archiver = scene.archiver(*options)
        archiver.wait_for_batches(1)
        time.sleep(scene.chance.uniform(0, 1.5))
        archiver.end(signal.SIGKILL)
    else:
        program = (
            "-m",
            "tests.contrib.lake.proof.killed_archiver",
            point,
            str(scene.chance.randint(1, 4)),
        )
        archiver = scene.archiver(*options, program=program)
        assert archiver.end() == -signal.SIGKILL, archiver.lines
    scene.faults[f"kill -9 of the archiver, {point}"] += 1
    print(f"killed no. {number + 1}, {point}, after {archiver.batches()} batches", flush=True)


def _kill_redis(scene: Scene) -> None:
    archiver = scene.archiver(*INTERVAL)
    scene.put_portion()
    archiver.wait_for_batches(1)
    scene.server.kill()
    time.sleep(scene.chance.uniform(0, 1))
    scene.server.start()
    seen = archiver.batches()
    scene.put_portion()
    archiver.wait_for_batches(seen + 1)
    assert archiver.end(signal.SIGTERM) == 0, archiver.lines
    scene.faults["kill -9 of Redis"] += 1
    print("Redis was killed and started again", flush=True)


def _kill_executors(scene: Scene) -> None:
    archiver = scene.archiver(*INTERVAL, *EXECUTORS)
    for _ in range(2):
        scene.put_portion()
        archiver.wait_for_batches(archiver.batches() + 1)
        time.sleep(scene.chance.uniform(0, 0.5))
        archiver.kill_executor()
        scene.faults["kill -9 of an executor"] += 1
        seen = archiver.batches()
        scene.put(range(0))
        archiver.wait_for_batches(seen + 1)
    assert archiver.end(signal.SIGTERM) == 0, archiver.lines
    print("executors were killed", flush=True)


def _handler(number: int) -> aioqless.Handler:
    handler: aioqless.Handler = getattr(handlers, KLASSES.get(number % 10, "quick"))
    return handler


def _ends(number: int) -> list[str]:
    return ENDS.get(KLASSES.get(number % 10, "quick"), ["complete"])


def _versions(lake: str) -> dict[str, int]:
    return {name: Lake(lake).table(name).version for name in (EVENTS, QUARANTINE)}


def _check(scene: Scene) -> dict[str, Any]:
    lake, entries = Lake(scene.lake), scene.state().added
    events = sorted(raw(lake, EVENTS), key=lambda row: row["ordinal"])
    rejected = raw(lake, QUARANTINE)
    ordinals = sorted(row["ordinal"] for row in (*events, *rejected))
    assert ordinals == list(range(1, entries + 1)), "an entry is missing or there twice"
    assert len({row["id"] for row in events}) == len(events) == scene.expected_events()
    assert {(row["namespace"], *row["tags"]) for row in events} == {(NAMESPACE, "proof")}
    jids = sorted(json.loads(row["raw"])["jid"] for row in rejected)
    assert jids == sorted(f"d{number}" for number in range(scene.damaged))
    ends: dict[str, list[str]] = {}
    for row in events:
        ends.setdefault(row["jid"], []).append(row["what"])
    assert ends == {f"j{number}": _ends(number) for number in range(scene.jobs)}
    shaken = [row["fence"] for row in events if int(row["jid"][1:]) % 10 == 1]
    assert min(shaken) >= 2, "a retry is a run of its own"
    return {
        "jobs": scene.jobs, "faults": scene.faults, "entries": entries,
        "events": len(events), "quarantined": len(rejected),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="nox -s proof --", description=__doc__)
    parser.add_argument("--jobs", type=int, default=200_000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 100_000)
    parser.add_argument("--folder", action="store_true", help="a lake in a folder")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="aioqless-proof-") as folder:
        proof = prove(
            Path(folder), options.jobs, options.kills, seed=options.seed, store=not options.folder
        )
    print(json.dumps(proof, indent=2))


if __name__ == "__main__":
    main()
