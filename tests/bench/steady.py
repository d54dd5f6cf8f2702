"""Jobs that arrive one by one at a fixed rate: the processor time of each, and how soon it starts.

Batches hide what one call costs. Here each of several producers, which are processes of their own,
awaits one put at a time, and one worker takes the jobs as they come.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

from tests.bench.meters import session_cpu
from tests.bench.peers import PEERS, Figures, Setup, installed
from tests.bench.server import server

RIVALS = ("aioqless", "bullmq")
PRODUCERS = 8
RATES = (200, 2_000)  # jobs per second
MOST = "most"  # as fast as the producers can
JOBS = 20_000  # where no rate is given
ACKNOWLEDGED = 0.5  # seconds until the last acknowledgements have arrived


def run_steady(rounds: int, seconds: float) -> Figures:
    """Measure aioqless and BullMQ in turn for several rounds.

    Returns {versions, redis, seconds, rounds: [{peer, round, rate, ...}]}; `rate` is what the
    producers were to put per second, or `most`.
    """
    present, _ = installed([peer for peer in PEERS if peer.name in RIVALS])
    measured: list[Figures] = []
    with server() as started, tempfile.TemporaryDirectory(prefix="aioqless-bench-") as folder:
        for number in range(rounds):
            for rate in (*RATES, None):
                for peer in present if number % 2 == 0 else present[::-1]:
                    figures: Figures = {
                        "peer": peer.name,
                        "round": number + 1,
                        "rate": MOST if rate is None else str(rate),
                        "load": os.getloadavg()[0],
                    }
                    figures |= _measure(Setup(peer, started, Path(folder)), rate, seconds)
                    measured.append(figures)
                    print(_line(figures), flush=True)
        return {
            "versions": {peer.name: peer.versions() for peer in present},
            "redis": started.version(),
            "seconds": seconds,
            "producers": PRODUCERS,
            "rounds": measured,
        }


def _measure(stand: Setup, rate: int | None, seconds: float) -> Figures:
    """Let producers put at a rate, or as fast as they can, while a worker runs the jobs.

    Processor time is counted from the first put to the last acknowledgement, for the worker's whole
    session and all of Redis; for the producers it is theirs around their puts.
    """
    each = int(JOBS if rate is None else rate * seconds) // PRODUCERS
    jobs = each * PRODUCERS
    stand.server.empty()
    with (
        stand.worker(jobs) as worker,
        stand.producers(PRODUCERS, each, 0 if rate is None else PRODUCERS / rate) as producers,
    ):
        time.sleep(1)  # the worker is idle
        redis, cpu = stand.server.cpu(), session_cpu(worker)
        reports = producers.run()
        delays = stand.report(worker, patience=60 + jobs / 200)["delays"]
        time.sleep(ACKNOWLEDGED)
        figures = {
            "put_rate": jobs / max(report["seconds"] for report in reports),
            "redis_us": (stand.server.cpu() - redis) / jobs * 1e6,
            "producer_us": sum(report["cpu"] for report in reports) / jobs * 1e6,
            "worker_us": (session_cpu(worker) - cpu) / jobs * 1e6,
        }
        if rate is not None:  # else a worker that is slower than the producers lags behind
            p50, p99 = (statistics.quantiles(delays, n=100)[at - 1] * 1000 for at in (50, 99))
            figures |= {"p50_ms": p50, "p99_ms": p99}
        return figures


def _line(figures: Figures) -> str:
    line = (
        f"{figures['peer']:9} {figures['rate']:>5}/s: {figures['put_rate']:7,.0f} put/s, µs a job: "
        f"Redis {figures['redis_us']:.0f}, producers {figures['producer_us']:.0f}, worker "
        f"{figures['worker_us']:.0f}"
    )
    if "p50_ms" not in figures:
        return line
    p50, p99 = figures["p50_ms"], figures["p99_ms"]
    return f"{line}; picked up after {p50:.1f} ms (p50), {p99:.1f} (p99)"
