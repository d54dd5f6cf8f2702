"""Rates with a million jobs, many states and several workers.

Also measured: the longest script call, memory, and the start of a worker.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from aioqless import Client, NewJob
from aioqless.store import CompleteManyRow
from tests.bench.driver import ARGUMENT, run
from tests.bench.meters import rss, session_cpu
from tests.bench.peers import PEERS, ROOT, Figures, Setup
from tests.bench.server import Server, server

WAITING = "ql:q:default-work"
KIBIBYTE = ARGUMENT | {"text": "x" * 960}  # 1 KiB as JSON
LIMIT = 5.0  # allowed ms of one script call


def run_scale(size: float) -> Figures:
    """Run all measurements.

    `size` scales all numbers of jobs. 1 gives the numbers of the report, which need an idle
    machine.
    """
    with server() as started, tempfile.TemporaryDirectory(prefix="aioqless-bench-") as folder:
        scale = Scale(Setup(PEERS[0], started, Path(folder)), size)
        steps: dict[str, Callable[[], Any]] = {
            "few": scale.rates_among_few,
            "beside": scale.rates_beside_other_states,
            "few_again": scale.rates_among_few,
            "million": scale.million,
            "few_at_last": scale.rates_among_few,
            "workers": lambda: {str(count): scale.workers(count) for count in (1, 2, 4)},
            "calls": scale.longest_calls,
            "start": scale.start,
        }
        figures: Figures = {"size": size, "redis": started.version()}
        for name, step in steps.items():
            began = time.monotonic()
            started.empty()
            figures[name] = step()
            print(f"{name} ({time.monotonic() - began:.0f} s): {figures[name]}", flush=True)
        return figures


class Scale:
    """Builds large states and measures how fast workers drain them."""

    def __init__(self, stand: Setup, size: float) -> None:
        self._stand = stand
        self._server: Server = stand.server
        self._size = size
        self._window = self._jobs(8_000)  # number of jobs per rate; a tenth of it is drained before

    def rates_among_few(self) -> list[float]:
        """Return the rates with 10,000 waiting jobs."""
        rates: list[float] = []
        with self._warm_worker():
            for _ in range(5):
                with self._paused():
                    count = self._fill(self._jobs(10_000))
                rates += [window["rate"] for window in self._rates(count, 1)]
                self._until_waiting(0)
        return rates

    def rates_beside_other_states(self) -> list[float]:
        """Return the rates with 10,000 waiting jobs beside many jobs in other states.

        The others: 100,000 scheduled, 100,000 waiting on dependencies, 50,000 completed, 1,000
        queues.
        """
        run(self._build_beside(ARGUMENT))
        return self.rates_among_few()

    def million(self) -> Figures:
        """Return the rates with 1,000,000 waiting jobs, bytes per job, and the worker's memory."""
        with self._warm_worker() as pid:
            with self._paused():
                before = self._server.memory()
                count = self._fill(self._jobs(1_000_000))
                size = (self._server.memory() - before) / count
            rates = [window["rate"] for window in self._rates(count, 5)]
            self._until_waiting(count * 9 // 10)
            early = rss(pid)
            self._until_waiting(0)
            return {
                "rates": rates,
                "bytes": size,
                "rss_mib_after_a_tenth": early,
                "rss_mib_after_all": rss(pid),
            }

    def workers(self, count: int) -> Figures:
        """Return the rate of several workers, and the processor share of each and of Redis."""
        with ExitStack() as stack:
            pids = [stack.enter_context(self._warm_worker()) for _ in range(count)]
            with self._paused():
                jobs = self._fill(self._jobs(100_000))
            windows = list(self._rates(jobs, 8, pids))
        return {name: statistics.median(window[name] for window in windows) for name in windows[0]}

    def longest_calls(self) -> Figures:
        """Return the longest script calls in ms with 1,000,000 waiting jobs and all other states.

        Jobs have 1 KiB of data. They are put, processed, released from dependencies, listed and
        checked.
        """
        self._server.record_slow_calls(1000)
        run(self._build_beside(KIBIBYTE))
        self._fill(self._jobs(1_000_000), KIBIBYTE)
        with self._stand.worker():
            self._until_waiting(self._jobs(950_000))
        run(self._read_all())
        slow = self._server.slow_calls()
        return {
            "longest_ms": {
                name: times[0] for name, times in sorted(slow.items(), key=lambda item: -item[1][0])
            },
            "over_limit": sum(each > LIMIT for times in slow.values() for each in times),
            "latency_ms": self._server.latest_latency(),
        }

    def start(self) -> Figures:
        """Return the seconds from a worker's start to its first job, and of the import alone."""
        starts: list[float] = []
        for _ in range(6):
            self._server.empty()
            run(self._put([NewJob("pick_up", 0)]))
            began = time.time()
            with self._stand.worker() as pid:
                starts.append(self._stand.notes(1, pid, patience=30)[0] - began)
        code = (
            "import time; began = time.perf_counter(); import aioqless; "
            "print(time.perf_counter() - began)"
        )
        imports = [
            float(
                subprocess.run(
                    [sys.executable, "-c", code], capture_output=True, check=True, cwd=ROOT
                ).stdout
            )
            for _ in range(6)
        ]
        return {
            "first_job": statistics.median(starts[1:]),
            "import": statistics.median(imports[1:]),
        }  # the first start compiled the files

    def _jobs(self, count: int) -> int:
        return int(count * self._size)

    @contextmanager
    def _warm_worker(self) -> Iterator[int]:
        """Start a worker that has already run jobs; yields its pid."""
        with self._stand.worker() as pid:
            self._fill(self._jobs(10_000))
            self._until_waiting(0)
            yield pid

    @contextmanager
    def _paused(self) -> Iterator[None]:
        """Pause the queue within the block, for all workers."""
        run(self._with_client(lambda client: client.queue("default").pause()))
        yield
        run(self._with_client(lambda client: client.queue("default").resume()))

    def _rates(self, waiting: int, windows: int, pids: Sequence[int] = ()) -> Iterator[Figures]:
        """Return the rates of several windows, starting when the first jobs are processed."""
        marks = [
            waiting - self._window // 10 - self._window * number for number in range(windows + 1)
        ]
        before = self._reading(marks[0], pids)
        for mark in marks[1:]:
            now = self._reading(mark, pids)
            seconds = now["time"] - before["time"]
            used = {
                name: (now[name] - before[name]) / seconds
                for name in now
                if name not in ("time", "waiting")
            }
            yield {"rate": (before["waiting"] - now["waiting"]) / seconds, **used}
            before = now

    def _reading(self, mark: int, pids: Sequence[int]) -> dict[str, float]:
        """Return the clocks as soon as at most `mark` jobs wait."""
        waiting = self._until_waiting(mark)
        used = {f"worker {number} cpu": session_cpu(pid) for number, pid in enumerate(pids, 1)}
        return {
            "time": time.monotonic(),
            "waiting": waiting,
            "redis cpu": self._server.cpu(),
            **used,
        }

    def _until_waiting(self, mark: int) -> int:
        """Wait until at most this number of jobs wait; returns how many do."""
        deadline = time.monotonic() + 600
        while (waiting := self._waiting()) > mark:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{waiting} jobs still wait; {mark} were hoped for")
            time.sleep(0.01)
        return waiting

    def _waiting(self) -> int:
        return int(self._server.redis.zcard(WAITING))

    def _fill(self, count: int, data: Any = ARGUMENT) -> int:
        run(self._put([NewJob("noop", data)] * count))
        return count

    async def _with_client(self, act: Callable[[Client], Any]) -> None:
        async with Client(self._server.url) as client:
            await act(client)

    async def _put(self, jobs: list[NewJob], queue: str = "default") -> None:
        """Put jobs in portions that need little memory, two at a time."""
        async with Client(self._server.url) as client:
            portions = iter([jobs[start : start + 5_000] for start in range(0, len(jobs), 5_000)])

            async def put_portions() -> None:
                for portion in portions:
                    await client.queue(queue).put_many(portion)

            await asyncio.gather(put_portions(), put_portions())

    async def _build_beside(self, data: Any) -> None:
        """Put scheduled, blocked and completed jobs into the queue, and fill many other queues."""
        gates = [NewJob("noop", data, jid=f"gate-{number}") for number in range(100)]
        await self._put(gates, "gates")
        await self._put([NewJob("noop", data, delay=86_400)] * self._jobs(100_000))
        held = self._jobs(100_000)
        await self._put(
            [NewJob("noop", data, depends=[f"gate-{number % 100}"]) for number in range(held)]
        )
        async with Client(self._server.url) as client:
            for number in range(self._jobs(1_000)):
                await client.queue(f"q{number}").put("noop", data)
        await self._complete(self._jobs(50_000), data)

    async def _complete(self, count: int, data: Any) -> None:
        await self._put([NewJob("noop", data)] * count, "done")
        async with Client(self._server.url) as client:
            while jobs := await client.queue("done").pop(100):
                batch: list[CompleteManyRow] = [{"jid": job.jid, "queue": "done"} for job in jobs]
                await client.internals.store.complete_many(worker=client.name, batch=batch)

    async def _read_all(self) -> None:
        """Read what a dashboard reads by default, run the first check steps, open 100 gates."""
        async with Client(self._server.url) as client:
            queue = client.queue("default")
            for _ in range(20):
                await client.queues()
                await queue.counts()
                await queue.stats()
                await queue.peek()
                await queue.length()
                await client.jobs.complete_jids()
                await client.jobs.failed_counts()
                await client.jobs.tags()
                await client.workers.counts()
                for state in ("waiting", "running", "stalled", "scheduled", "depends", "recurring"):
                    await queue.jids(state)
            cursor = "0"
            for _ in range(200):
                step = await client.internals.store.check(cursor=cursor)
                if (cursor := step["cursor"]) == "0":
                    break
            for gate in await client.queue("gates").pop(100):
                await gate.complete()
