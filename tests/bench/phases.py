"""What is measured of each library, one phase after the other, on an empty Redis."""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.bench.meters import rss, session_pids
from tests.bench.peers import Figures, Peer, Setup, installed
from tests.bench.server import server

PHASES = {
    "one": "put one at a time, each awaited",
    "together": "put by 100 concurrent callers",
    "many": "put by a call for many",
    "drain": "drain no-op jobs",
    "sleep": "drain jobs that sleep 10 ms",
    "pick_up": "pick-up by an idle worker, and what it sends while idle",
}
IDLE = 5.0  # seconds for which the commands of an idle worker are counted
PACED = 200  # pickups per round
UNCOUNTED = 10  # the first pickups also load scripts and connect


def run_peers(peers: Sequence[Peer], phases: Sequence[str], rounds: int, jobs: int) -> Figures:
    """Measure the libraries in turn for several rounds, each starting with another library.

    Returns {versions, left_out, rounds, redis}.
    """
    present, left_out = installed(peers)
    measured: list[Figures] = []
    with server() as started, tempfile.TemporaryDirectory(prefix="aioqless-bench-") as folder:
        for number in range(rounds):
            first = number * len(present) // rounds
            for peer in present[first:] + present[:first]:
                measured.append(
                    _measure(Setup(peer, started, Path(folder)), phases, jobs, number + 1)
                )
        versions = {peer.name: peer.versions() for peer in present}
        return {
            "jobs": jobs,
            "redis": started.version(),
            "versions": versions,
            "left_out": left_out,
            "rounds": measured,
        }


def _measure(stand: Setup, phases: Sequence[str], jobs: int, number: int) -> Figures:
    """Run all phases for one library; a phase that fails is recorded as {error}."""
    peer, load = stand.peer, os.getloadavg()[0]
    began = time.monotonic()
    print(f"round {number}: {peer.name} (load {load:.1f})", flush=True)
    share = max(1, int(jobs * peer.share))
    small = max(1, jobs // 4)
    works: dict[str, tuple[bool, Callable[[], Figures]]] = {
        "one": (True, lambda: put(stand, "one", min(small, share))),
        "together": (peer.at_once, lambda: put(stand, "together", jobs)),
        "many": (peer.many, lambda: put(stand, "many", jobs)),
        "drain": (True, lambda: drain(stand, "noop", share)),
        "sleep": (peer.at_once, lambda: drain(stand, "sleep", small)),
        "pick_up": (True, lambda: pick_up(stand)),
    }
    figures: Figures = {"peer": peer.name, "round": number, "load": load}
    for phase in phases:
        concerned, work = works[phase]
        if not concerned:
            continue
        stand.server.empty()
        try:
            figures[phase] = work()
        except Exception as error:  # an error of one library must not end the run of the others
            figures[phase] = {"error": str(error)}
            print(f"  {phase}: {error}", file=sys.stderr)
        else:
            print(
                f"  {phase:9}"
                + "".join(f"  {name} {value:,.1f}" for name, value in figures[phase].items()),
                flush=True,
            )
    print(f"  took {time.monotonic() - began:.0f} s", flush=True)
    return figures


def put(stand: Setup, how: str, count: int) -> Figures:
    """Measure the cost of a put for its caller and for Redis."""
    before, memory = stand.server.cpu(), stand.server.memory()
    client = stand.put(how, "noop", count)
    return {
        "rate": count / client["seconds"],
        "client_us": client["cpu"] / count * 1e6,
        "redis_us": (stand.server.cpu() - before) / count * 1e6,
        "bytes": (stand.server.memory() - memory) / count,
    }


def drain(stand: Setup, job: str, count: int) -> Figures:
    """Drain jobs that were put before the worker started.

    Wall-clock time is from the start of the first job to the end of the last, as the worker records
    it. Processor time is that of the worker's whole session between these moments, and that of
    Redis until the last acknowledgements have arrived.
    """
    stand.put(
        "many" if stand.peer.many else "together" if stand.peer.at_once else "one", job, count
    )
    before = stand.server.cpu()
    with stand.worker(count) as pid:
        report = stand.report(pid, patience=60 + count / 20)
        time.sleep(0.5)
        first, last = report["first"], report["last"]
        return {
            "rate": count / (last["time"] - first["time"]),
            "worker_us": (last["cpu"] - first["cpu"]) / count * 1e6,
            "redis_us": (stand.server.cpu() - before) / count * 1e6,
            "rss_mib": sum(rss(pid) for pid in session_pids(pid)),
        }


def pick_up(stand: Setup) -> Figures:
    """Measure an idle worker's commands, and the ms from the call of put to the handler's start."""
    with stand.worker() as pid:
        stand.put("paced", "pick_up", 1)
        ready = len(stand.notes(1, pid, patience=60))
        time.sleep(2)
        count_commands = stand.server.count_commands(IDLE) / IDLE
        stand.put("paced", "pick_up", UNCOUNTED + PACED)
        notes = stand.notes(ready + UNCOUNTED + PACED, pid, patience=60)[ready + UNCOUNTED :]
    p50, p99 = (statistics.quantiles(notes, n=100)[at - 1] * 1000 for at in (50, 99))
    return {"p50_ms": p50, "p99_ms": p99, "idle_commands": count_commands}
