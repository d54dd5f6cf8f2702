"""Rows per second and processor time per row of Spark, compared with a plain loop in one process.

Measured are jobs read, events archived and rows put; only Spark archives.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redis import Redis

from aioqless import Client, NewJob
from tests.bench.meters import TICK
from tests.bench.peers import Figures
from tests.bench.server import Server, server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = 1_000
MASTER = f"local[{min(2, os.cpu_count() or 1)}]"


def run_lake(number: int) -> Figures:
    """Measure `number` rows, and ten times as many.

    Returns {"read": {"20000": {"loop": {rows, seconds, cpu}, "spark": {...}}}, ...}.
    """
    with server() as started, tempfile.TemporaryDirectory(prefix="aioqless-bench-") as folder:
        url, sizes = started.url, (number, 10 * number)
        for size in sizes:
            asyncio.run(fill(url, size))
            write_rows(rows_file(Path(folder), size), size)
        # a file that others make when the machine is idle
        if ready := os.environ.get("BENCH_READY"):
            Path(ready).touch()
        wait_until_idle()
        from aioqless.contrib.lake.spark.session import session

        found: Figures = {work: {} for work in ("read", "archive", "put")}
        spark = session("bench", master=MASTER)
        try:
            for work, size in [(work, size) for work in found for size in sizes]:
                bench = Bench(url, Path(folder), size, spark)
                by_spark = getattr(bench, f"spark_{work}")
                archive = dump_archive(url, size)
                by_spark("warm")
                ways = {"spark": partial(by_spark, "measured")}
                if work != "archive":  # which Spark alone does
                    ways["loop"] = getattr(bench, f"loop_{work}")
                for name, act in ways.items():
                    restore_archive(url, size, archive)
                    found[work].setdefault(str(size), {})[name] = measure(act, size, started)
                print(work, size, found[work][str(size)], flush=True)
        finally:
            spark.stop()
        return {**found, "cores": os.cpu_count(), "master": MASTER}


def wait_until_idle() -> None:
    """Wait until other programs leave both cores idle for some seconds; at most two minutes."""
    deadline = time.monotonic() + float(os.environ.get("BENCH_PATIENCE", "120"))
    while time.monotonic() < deadline:
        before = busy()
        time.sleep(3)
        if busy() - before < 0.35 * 3:
            return


def busy() -> float:
    """Return the seconds that the machine's cores were busy since it started."""
    user, nice, system, _idle, _wait, irq, soft, *_ = map(
        int, Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    )
    return (user + nice + system + irq + soft) / TICK


def measure(act: Callable[[], Any], rows: int, server: Server) -> dict[str, float]:
    """Return {rows per second, seconds, µs of processor time per row}, without the server's time.

    Processor time includes all processes that this one started.
    """
    before, began = server.cpu(), time.perf_counter()
    with Meter() as meter:
        act()
    seconds = time.perf_counter() - began
    return {
        "rate": rows / seconds,
        "seconds": seconds,
        "cpu": (meter.spent - (server.cpu() - before)) / rows * 1e6,
    }


class Meter:
    """Measures the processor seconds of this process and its descendants within a block.

    The kernel reaps the workers of Spark's daemon without adding up their times, so they are
    sampled while they live.
    """

    def __enter__(self) -> Meter:
        self.spent = 0.0
        self._own = 0.0
        self._before, self._last = times_of_all(), dict[int, float]()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._over.wait(0.1):
            self._last |= times_of_all()
        self._own = time.thread_time()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._last |= times_of_all()
        self.spent = (
            sum(seconds - self._before.get(pid, 0.0) for pid, seconds in self._last.items())
            - self._own
        )


def times_of_all() -> dict[int, float]:
    """Return the processor seconds of this process and of each of its descendants."""
    children: dict[int, list[int]] = {}
    times: dict[int, float] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, rest = int(stat.parent.name), stat.read_text().rpartition(") ")[2].split()
        except (OSError, ValueError):
            continue
        children.setdefault(int(rest[1]), []).append(pid)
        times[pid] = sum(map(int, rest[11:13])) / TICK
    todo, found = [os.getpid()], dict[int, float]()
    while todo:
        pid = todo.pop()
        found[pid] = times.get(pid, 0.0)
        todo += children.get(pid, [])
    return found


def namespace(size: int) -> str:
    return f"n{size}"


def rows_file(folder: Path, size: int) -> Path:
    return folder / f"rows-{size}.parquet"


async def fill(url: str, size: int) -> None:
    """Complete a number of jobs, whose ends are in the archive."""
    async with Client(url, namespace=namespace(size)) as client:
        for name, value in (
            ("archive", "on"),
            ("archive-length", 10_000_000),
            ("jobs-history-count", 10_000_000),
        ):
            await client.config.set(name, value)
        queue = client.queue("work")
        await queue.put_many(
            NewJob("bench.job", {"n": n, "text": "x" * 40}, tags=["a"] if n % 3 else None)
            for n in range(size)
        )
        while jobs := await queue.pop(100):
            await asyncio.gather(*(job.complete() for job in jobs))


def dump_archive(url: str, size: int) -> dict[str, bytes]:
    """Return the keys of the archive and their values, which the archiver changes."""
    with Redis.from_url(url) as redis:
        return {key: value for key in keys_of_archive(size) if (value := redis.dump(key))}


def restore_archive(url: str, size: int, dumped: dict[str, bytes]) -> None:
    """Set the keys of the archive to these values, and delete those that it didn't have."""
    with Redis.from_url(url) as redis:
        redis.delete(*keys_of_archive(size))
        for key, value in dumped.items():
            redis.restore(key, 0, value)


def keys_of_archive(size: int) -> list[str]:
    return [f"{namespace(size)}:x:archive", f"{namespace(size)}:x:archive:read"]


def write_rows(path: Path, size: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table(
        {
            "n": range(size),
            "text": ["x" * 40] * size,
            "priority": [float(n % 3) for n in range(size)],
        }
    )
    pq.write_table(table, path, row_group_size=max(1_000, size // 4))


@dataclass
class Bench:
    """Both ways of doing each task, for a number of rows."""

    url: str
    folder: Path
    size: int
    spark: SparkSession

    def loop_read(self) -> None:
        redis, count = Redis.from_url(self.url, decode_responses=True), 0
        for keys in pages(
            redis.scan_iter(f"{namespace(self.size)}:j:*", count=2_000, _type="hash")
        ):
            pipe = redis.pipeline(transaction=False)
            for key in keys:
                pipe.hmget(key, FIELDS)
            count += len([typed(row) for row in pipe.execute()])
        assert count == self.size

    def spark_read(self, run: str) -> None:
        jobs = (
            self.spark.read.format("aioqless")
            .option("url", self.url)
            .option("namespace", namespace(self.size))
        )
        jobs.schema(COLUMNS).load("jobs").write.format("noop").mode("overwrite").save()

    def spark_archive(self, run: str) -> None:
        """Archive into a new lake."""
        from aioqless.contrib.lake.archiver import Archiver
        from aioqless.contrib.lake.lake import Lake

        lake = Lake(self.folder / f"lake-{run}-{self.size}", create=True)
        archiver = Archiver(lake, lambda _: self.spark, self.url, namespace(self.size))
        assert archiver.once().events == self.size

    def loop_put(self) -> None:
        asyncio.run(self._loop_put())

    async def _loop_put(self) -> None:
        import pyarrow.parquet as pq

        async with Client(self.url, namespace=f"loop{self.size}") as client:
            for batch in pq.ParquetFile(rows_file(self.folder, self.size)).iter_batches(10_000):
                rows = batch.to_pylist()
                jobs = [
                    NewJob(
                        "bench.job", {"n": row["n"], "text": row["text"]}, priority=row["priority"]
                    )
                    for row in rows
                ]
                await client.queue("work").put_many(jobs)

    def spark_put(self, run: str) -> None:
        rows = self.spark.read.parquet(str(rows_file(self.folder, self.size))).repartition(2)
        options = {
            "url": self.url,
            "namespace": f"spark{self.size}{run}",
            "queue": "work",
            "klass": "bench.job",
        }
        rows.write.format("aioqless").mode("append").options(**options).save()


FIELDS = [
    "jid",
    "klass",
    "queue",
    "state",
    "priority",
    "tags",
    "data",
    "worker",
    "retries",
    "remaining",
    "expires",
    "time",
]
COLUMNS = (
    "jid string, klass string, queue string, state string, priority double, tags array<string>, "
    "data string, worker string, "
    "retries bigint, remaining bigint, expires timestamp, time timestamp"
)


def pages(items: Iterator[Any]) -> Iterator[list[Any]]:
    page: list[Any] = []
    for item in items:
        page.append(item)
        if len(page) == PAGE:
            yield page
            page = []
    if page:
        yield page


def typed(row: list[Any]) -> dict[str, Any]:
    import json

    job = dict(zip(FIELDS, row, strict=True))
    job["tags"] = json.loads(job["tags"])
    for name, kind in (
        ("priority", float),
        ("retries", int),
        ("remaining", int),
        ("expires", float),
        ("time", float),
    ):
        job[name] = kind(job[name] or 0)
    return job
