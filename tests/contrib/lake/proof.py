"""Jobs flow, the archiver is killed again and again, Redis is killed once: the lake's raw files
have each end exactly once.

`python -m tests.contrib.lake.proof --jobs 200000 --kills 6` is the long form (`nox -s proof`); the
tests run a short one."""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

import aioqless
from aioqless import Client, NewJob
from aioqless.client.archive import Archive, ArchiveState
from tests.contrib.lake import proof_jobs
from tests.server import OwnServer

KLASSES = {0: "staged", 1: "shaky", 2: "bad"}  # by the last digit; the others are quick
Finish: TypeAlias = Callable[
    [str, Path, int], list[int]
]  # of a URL, a lake, and the most entries of a batch: the batches told of
ENDS = {"staged": ["advance", "complete"], "bad": ["fail"]}


@dataclass
class Proof:
    """What was done, and what came of it."""

    jobs: int
    entries: int = 0  # ends of stages that Redis counted
    rows: int = 0  # what pyarrow read of the raw files
    files: int = 0
    kills: int = 0
    batches_told: int = 0  # by all archivers together
    batches: int = 0
    seconds: float = 0.0


def batches_in(lines: Iterable[str]) -> list[int]:
    """The numbers of the batches that an archiver's lines tell of."""
    return [int(found[1]) for line in lines if (found := re.match(r"batch (\d+):", line))]


class Killed:
    """An archiver in a process of its own, whose words are kept."""

    def __init__(self, url: str, lake: Path, *options: str) -> None:
        command = [
            sys.executable,
            "-m",
            "aioqless",
            "pipeline",
            "archive",
            "--url",
            url,
            "--lake",
            str(lake),
            *options,
        ]
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._ear = threading.Thread(target=self._listen)
        self._ear.start()

    def _listen(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.append(line.rstrip())

    def batches(self) -> list[int]:
        """The numbers of the batches that it told of."""
        return batches_in(self.lines)

    def kill(self) -> None:
        self.process.kill()
        self.wait()

    def wait(self, patience: float = 900) -> int:
        code = self.process.wait(patience)
        self._ear.join()
        assert self.process.stdout
        self.process.stdout.close()
        return code


@contextmanager
def working(url: str) -> Iterator[None]:
    """Real workers, in two processes."""
    options = ["--url", url, "-w", "2", "-q", "second", "-q", "work"]
    command = [
        sys.executable,
        "-m",
        "aioqless",
        "worker",
        "tests.contrib.lake.proof_jobs",
        *options,
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


def by_process(url: str, lake: Path, entries: int) -> list[int]:
    """Archive all that there is, by another process; returns the batches that it told of."""
    archiver = Killed(url, lake, "--entries", str(entries))
    assert archiver.wait(3600) == 0, archiver.lines
    return archiver.batches()


def prove(
    folder: Path,
    jobs: int,
    kills: int,
    *,
    seed: int,
    finish: Finish = by_process,
    tell: Callable[[str], object] = print,
) -> Proof:
    """Raises AssertionError where the lake isn't what it must be. `finish` archives what the killed
    ones left."""
    proof, chance, began = Proof(jobs), random.Random(seed), time.monotonic()
    server, lake, entries = OwnServer(folder), folder / "lake", max(100, jobs // 40)
    server.start()
    told: list[int] = []
    try:
        asyncio.run(_switched_on(server.url))
        portions = _portions(jobs, kills + 2)
        with working(server.url):
            for number in range(kills):
                _put(server.url, next(portions))
                archiver = Killed(server.url, lake, "--every", "0.2", "--entries", str(entries))
                _until(archiver.batches, archiver)
                if number == kills // 2:
                    seen = len(archiver.batches())
                    server.kill()
                    server.start()
                    tell("Redis was killed and started again")
                    _put(server.url, next(portions))
                    _until(
                        lambda archiver=archiver, seen=seen: len(archiver.batches()) > seen,  # type: ignore[misc]
                        archiver,
                    )
                time.sleep(chance.uniform(0, 1.5))
                archiver.kill()
                proof.kills += 1
                told += archiver.batches()
                tell(f"kill -9 no. {proof.kills} behind batch {archiver.batches()[-1]}")
            _put(server.url, next(portions))
            _until(lambda: _state(server.url).added >= _expected(jobs), None, 3600)
        told += finish(server.url, lake, entries)
        proof.entries = _state(server.url).added
        proof.batches_told, proof.batches = len(told), len(set(told))
        before = digest(lake)
        finish(server.url, lake, entries)
        assert digest(lake) == before, "archiving again changed something"
        _check(proof, lake)
        assert _state(server.url).length == 0, "what is in the lake is trimmed"
    finally:
        server.kill()
    proof.seconds = round(time.monotonic() - began, 1)
    return proof


async def _switched_on(url: str) -> None:
    async with Client(url) as client:
        await client.config.set("archive", "on")


def _portions(jobs: int, count: int) -> Iterator[range]:
    """The numbers of the jobs, in so many parts."""
    for part in range(count):
        yield range(jobs * part // count, jobs * (part + 1) // count)


def _put(url: str, numbers: range) -> None:
    async def put() -> None:
        async with Client(url) as client:
            await client.queue("work").put_many(
                NewJob(_job(number).klass, jid=f"j{number}", tags=["proof"]) for number in numbers
            )

    asyncio.run(put())


def _klass(number: int) -> str:
    return KLASSES.get(number % 10, "quick")


def _job(number: int) -> aioqless.Handler:
    handler: aioqless.Handler = getattr(proof_jobs, _klass(number))
    return handler


def _expected(jobs: int) -> int:
    return sum(len(ENDS.get(_klass(number), ["complete"])) for number in range(jobs))


def _state(url: str) -> ArchiveState:
    async def asked() -> ArchiveState:
        async with Client(url) as client:
            return await Archive(client.store).state()

    return asyncio.run(asked())


def _until(condition: Callable[[], object], archiver: Killed | None, patience: float = 900) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        if archiver and archiver.process.poll() is not None:
            raise AssertionError(f"the archiver ended: {archiver.lines}")
        if time.monotonic() > deadline:
            raise AssertionError(
                f"waited for {patience} s in vain; the archiver said {archiver and archiver.lines[-5:]}"
            )
        time.sleep(0.05)


def raw(lake: Path) -> pa.Table:
    """All that any reader of Parquet finds below bronze; a file that isn't whole raises."""
    files = sorted(path for path in (lake / "bronze").rglob("*") if path.is_file())
    assert {file.suffix for file in files} <= {".parquet"}, files
    return pa.concat_tables([pq.read_table(file, partitioning=None) for file in files])


def digest(lake: Path) -> str:
    """Of every file of the tables: its name and its bytes."""
    found = hashlib.sha256()
    for path in sorted(
        path
        for table in ("bronze", "quarantine")
        for path in (lake / table).rglob("*")
        if path.is_file()
    ):
        found.update(os.fsencode(path.relative_to(lake)))
        found.update(path.read_bytes())
    return found.hexdigest()


def _check(proof: Proof, lake: Path) -> None:
    table = raw(lake)
    proof.rows = table.num_rows
    proof.files = sum(1 for path in (lake / "bronze").rglob("*.parquet"))
    ends: dict[str, list[str]] = {}
    for row in table.select(["ordinal", "jid", "what"]).sort_by("ordinal").to_pylist():
        ends.setdefault(row["jid"], []).append(row["what"])
    wrong = [
        (number, ends.get(f"j{number}"))
        for number in range(proof.jobs)
        if ends.get(f"j{number}") != ENDS.get(_klass(number), ["complete"])
    ]
    assert not wrong, (
        f"{len(wrong)} jobs are in the lake in another way than they ended: {wrong[:5]}"
    )
    assert sorted(table["ordinal"].to_pylist()) == list(range(1, proof.entries + 1))
    assert len(set(table["id"].to_pylist())) == proof.rows == proof.entries == _expected(proof.jobs)
    shaken = [
        len(runs)
        for jid, runs in zip(table["jid"].to_pylist(), table["runs"].to_pylist(), strict=True)
        if int(jid[1:]) % 10 == 1
    ]
    assert min(shaken) >= 2, "a retry is a run of its own"
    assert not list((lake / "quarantine").rglob("*.parquet"))


def _aloud(line: str) -> None:
    print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="nox -s proof --", description=__doc__)
    parser.add_argument("--jobs", type=int, default=200_000)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 100_000)
    options = parser.parse_args()
    _aloud(f"seed {options.seed}")
    with tempfile.TemporaryDirectory(prefix="aioqless-proof-") as folder:
        proof = prove(Path(folder), options.jobs, options.kills, seed=options.seed, tell=_aloud)
    print(asdict(proof))


if __name__ == "__main__":
    main()
