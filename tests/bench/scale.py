"""What a million jobs, many states and several workers do to the rates; the longest script call,
memory, and starting."""

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
from tests.bench.peers import PEERS, ROOT, Figures, Stand
from tests.bench.server import Server, server

WAITING = "ql:q:default-work"
KIBIBYTE = ARGUMENT | {"text": "x" * 960}  # 1 KiB as JSON
LIMIT = 5.0  # ms that a script call may take


def run_scale(size: float) -> Figures:
    """All of it; `size` scales every number of jobs, 1 for the numbers of the report, which are for
    a quiet machine alone."""
    with server() as started, tempfile.TemporaryDirectory(prefix="aioqless-bench-") as folder:
        scale = Scale(Stand(PEERS[0], started, Path(folder)), size)
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
    """Builds large states and watches workers drain them, by how many jobs wait."""

    def __init__(self, stand: Stand, size: float) -> None:
        self._stand = stand
        self._server: Server = stand.server
        self._size = size
        self._window = self._jobs(
            8_000
        )  # jobs over which one rate is taken; a tenth of them go before

    def rates_among_few(self) -> list[float]:
        """The rates with 10,000 waiting."""
        rates: list[float] = []
        with self._warm_worker():
            for _ in range(5):
                with self._paused():
                    count = self._fill(self._jobs(10_000))
                rates += [window["rate"] for window in self._watch(count, 1)]
                self._until_waiting(0)
        return rates

    def rates_beside_other_states(self) -> list[float]:
        """The rates with 10,000 waiting among 100,000 scheduled, 100,000 held, 50,000 completed,
        and 1,000 queues."""
        run(self._build_beside(ARGUMENT))
        return self.rates_among_few()

    def million(self) -> Figures:
        """The rates with 1,000,000 waiting, the bytes that each takes, and the worker's memory as
        it drains them all."""
        with self._warm_worker() as pid:
            with self._paused():
                before = self._server.memory()
                count = self._fill(self._jobs(1_000_000))
                size = (self._server.memory() - before) / count
            rates = [window["rate"] for window in self._watch(count, 5)]
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
        """What so many worker processes drain together, and how much of a processor each of them
        and Redis uses."""
        with ExitStack() as stack:
            pids = [stack.enter_context(self._warm_worker()) for _ in range(count)]
            with self._paused():
                jobs = self._fill(self._jobs(100_000))
            windows = list(self._watch(jobs, 8, pids))
        return {name: statistics.median(window[name] for window in windows) for name in windows[0]}

    def longest_calls(self) -> Figures:
        """The longest calls of scripts, in ms, with 1,000,000 waiting and all the other states
        beside, data of 1 KiB: as jobs are put, worked off, set free, listed and checked."""
        self._server.watch_slow(1000)
        run(self._build_beside(KIBIBYTE))
        self._fill(self._jobs(1_000_000), KIBIBYTE)
        with self._stand.worker():
            self._until_waiting(self._jobs(950_000))
        run(self._look_at_everything())
        slow = self._server.slow_calls()
        return {
            "longest_ms": {
                name: times[0] for name, times in sorted(slow.items(), key=lambda item: -item[1][0])
            },
            "over_limit": sum(each > LIMIT for times in slow.values() for each in times),
            "latency_ms": self._server.latest_latency(),
        }

    def start(self) -> Figures:
        """Seconds from the start of a worker to the first line of its first job, and of the import
        alone."""
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
        }  # the first compiled the files

    def _jobs(self, count: int) -> int:
        return int(count * self._size)

    @contextmanager
    def _warm_worker(self) -> Iterator[int]:
        """A worker that has already worked; yields its pid."""
        with self._stand.worker() as pid:
            self._fill(self._jobs(10_000))
            self._until_waiting(0)
            yield pid

    @contextmanager
    def _paused(self) -> Iterator[None]:
        """Let nothing be popped within the block, however many workers there are."""
        run(self._with_client(lambda client: client.queue("default").pause()))
        yield
        run(self._with_client(lambda client: client.queue("default").unpause()))

    def _watch(self, waiting: int, windows: int, pids: Sequence[int] = ()) -> Iterator[Figures]:
        """Rates over so many windows, from when the first of the waiting jobs are gone."""
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
        """The clocks, once no more than `mark` jobs wait."""
        waiting = self._until_waiting(mark)
        used = {f"worker {number} cpu": session_cpu(pid) for number, pid in enumerate(pids, 1)}
        return {
            "time": time.monotonic(),
            "waiting": waiting,
            "redis cpu": self._server.cpu(),
            **used,
        }

    def _until_waiting(self, mark: int) -> int:
        """Wait until no more than so many jobs wait; returns how many do."""
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
        """Put jobs, in portions that Python's memory takes lightly, two under way at a time."""
        async with Client(self._server.url) as client:
            portions = iter([jobs[start : start + 5_000] for start in range(0, len(jobs), 5_000)])

            async def put_portions() -> None:
                for portion in portions:
                    await client.queue(queue).put_many(portion)

            await asyncio.gather(put_portions(), put_portions())

    async def _build_beside(self, data: Any) -> None:
        """Scheduled, held, and completed jobs of the same queue, and many other queues."""
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
                await client.store.complete_many(worker=client.name, batch=batch)

    async def _look_at_everything(self) -> None:
        """What a dashboard asks for, with the default counts; the first steps of a check; and 100
        gates that open."""
        async with Client(self._server.url) as client:
            queue = client.queue("default")
            for _ in range(20):
                await client.queues()
                await queue.counts()
                await queue.stats()
                await queue.peek()
                await queue.length()
                await client.jobs.complete()
                await client.jobs.failed()
                await client.jobs.tags()
                await client.workers.counts()
                for state in ("waiting", "running", "stalled", "scheduled", "depends", "recurring"):
                    await queue.jobs(state)
            cursor = "0"
            for _ in range(200):
                step = await client.store.check(cursor=cursor)
                if (cursor := step["cursor"]) == "0":
                    break
            for gate in await client.queue("gates").pop(100):
                await gate.complete()
