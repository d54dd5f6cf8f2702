"""What a job costs on 1, 2, 3 and 6 nodes of a Cluster: `python -m tests.bench.partitions`.

Each round puts and runs the same number of jobs on every Cluster in turn, so that the ratios hold
on a busy machine, too. It writes the table of docs/scaling-out.md.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import re
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import uvloop

from aioqless import Client, Job, Settings, Worker, job
from aioqless.contrib.partitions import PartitionedClient, PartitionedWorker
from aioqless.worker import AnyWorker
from tests.servers.processes import Cluster, server_program

PAGE = Path(__file__).parents[2] / "docs" / "scaling-out.md"
NODES = (1, 2, 3, 6)
PARTITIONS = 48
IDLE = 1.0  # seconds over which the CPU of idle nodes is measured


@job(klass="noop")
async def noop(job: Job, n: int) -> None:
    pass


@dataclass(frozen=True)
class Figures:
    """What a job cost, in microseconds of CPU, and how much more the busiest node had to do."""

    redis: float
    put: float
    worker: float
    busiest: float


def used(cluster: Cluster) -> list[float]:
    """Return the CPU time of each node, in seconds."""
    infos = [node.info("INFO", "cpu") for node in cluster.masters]
    return [float(info["used_cpu_user"]) + float(info["used_cpu_sys"]) for info in infos]


async def measure(cluster: Cluster, partitions: int | None, jobs: int) -> Figures:
    """Put and run some jobs; None: in an ordinary namespace."""
    client: Client = (
        Client(cluster.url, namespace="{bench}")
        if partitions is None
        else PartitionedClient(cluster.url, namespace="bench", partitions=partitions)
    )
    async with client:
        before, began = used(cluster), time.monotonic()
        await asyncio.sleep(IDLE)
        idle = [(now - then) / IDLE for now, then in zip(used(cluster), before, strict=True)]
        before, began, own = used(cluster), time.monotonic(), time.process_time()
        queue = client.queue("default")
        for start in range(0, jobs, 500):
            await asyncio.gather(*(queue.put(noop, {"n": start + n}) for n in range(500)))
        put = time.process_time() - own
        own = time.process_time()
        settings = Settings(concurrency=100, burst=True)
        worker: AnyWorker
        if isinstance(client, PartitionedClient):
            worker = PartitionedWorker(client, noop, settings=settings)
        else:
            worker = Worker(client, noop, settings=settings)
        await worker.run()
        ran = time.process_time() - own
        seconds = time.monotonic() - began
        busy = [
            now - then - rest * seconds
            for now, then, rest in zip(used(cluster), before, idle, strict=True)
        ]
    redis, put, ran = (each / jobs * 1e6 for each in (sum(busy), put, ran))
    return Figures(redis, put, ran, max(busy) / statistics.mean(busy))


def run_rounds(rounds: int, jobs: int, nodes: Sequence[int] = NODES) -> list[str]:
    """Return the rows of the table: medians over the rounds."""
    cases = [(nodes[0], None), *((count, PARTITIONS) for count in nodes)]
    found: dict[tuple[int, int | None], list[Figures]] = {case: [] for case in cases}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="aioqless-bench-")))
        program = server_program()
        clusters = {
            count: stack.enter_context(
                Cluster(folder / str(count), masters=count, replicas=False, program=program)
            )
            for count in nodes
        }
        for number in range(rounds + 1):
            for case in cases if number % 2 else cases[::-1]:
                figures = uvloop.run(measure(clusters[case[0]], case[1], jobs))
                print(case, figures, flush=True)
                if number:  # the first round loads scripts
                    found[case].append(figures)
    rows = [
        "| nodes | partitions | Redis, µs | put, µs | worker, µs | to one node | busiest node |"
    ]
    rows.append("|---|---|---|---|---|---|---|")
    one = found[cases[0]]
    for (count, partitions), own in found.items():
        redis, put, worker, busiest = (
            statistics.median(getattr(each, name) for each in own)
            for name in ("redis", "put", "worker", "busiest")
        )
        ratio = statistics.median(
            (each.redis + each.worker) / (first.redis + first.worker)
            for each, first in zip(own, one, strict=True)
        )
        rows.append(
            f"| {count} | {partitions or 'none'} | {redis:.0f} | {put:.0f} | {worker:.0f} | "
            f"{ratio - 1:+.0%} | {busiest - 1:+.0%} |"
        )
    return rows


def write(rows: Sequence[str], page: Path = PAGE) -> None:
    """Replace the marked table of the page."""
    marked = re.compile(r"(?<=<!-- partitions -->\n).*?(?=<!-- /partitions -->)", re.DOTALL)
    page.write_text(marked.sub("\n".join([*rows, ""]), page.read_text("utf-8")), "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.partitions", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    # Few jobs would share the start and the end of a worker, which ask all partitions.
    parser.add_argument("--jobs", type=int, default=40_000)
    options = parser.parse_args()
    logging.getLogger("aioqless").setLevel(logging.ERROR)
    rows = run_rounds(options.rounds, options.jobs)
    print(*rows, sep="\n")
    write(rows)


if __name__ == "__main__":
    main()
