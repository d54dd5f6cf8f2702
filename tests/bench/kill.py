"""Recovery of a running job after its worker was killed with -9: whether and when it runs again."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.bench.peers import Figures, Peer, Setup, installed
from tests.bench.server import server

# seconds; with default settings, every job that is recovered at all is recovered by then
RECOVERY_TIMEOUT = 660.0
# seconds between other jobs that arrive meanwhile: some libraries look for lost jobs only when they
# take new ones
OTHER_JOBS_INTERVAL = 30.0


def run_kill(peers: Sequence[Peer], patience: float) -> Figures:
    """Kill a worker of each library at the same time, each with its own Redis.

    Returns {library: {back_after} or {error}}; `back_after` is None for a job that did not run
    again within `patience` seconds.
    """
    present, _ = installed(peers)
    print(
        f"each worker is killed with one job running; waiting up to {patience:.0f} s for these "
        f"to start again",
        flush=True,
    )
    with ThreadPoolExecutor(len(present)) as pool:
        outcomes = dict(
            zip(
                (peer.name for peer in present),
                pool.map(lambda peer: _try(peer, patience), present),
                strict=True,
            )
        )
    return {"patience": patience, "outcomes": outcomes}


def _try(peer: Peer, patience: float) -> Figures:
    try:
        return _kill_one(peer, patience)
    except Exception as error:  # an error of one library must not end the run of the others
        print(f"{peer.name}: {error}", flush=True)
        return {"error": str(error)}


def _kill_one(peer: Peer, patience: float) -> Figures:
    with server() as started, tempfile.TemporaryDirectory(prefix="aioqless-bench-") as folder:
        stand = Setup(peer, started, Path(folder))
        stand.put("one", "hang", 1)
        with stand.worker() as pid:
            stand.notes(1, pid, patience=60)
            time.sleep(1)
        killed = time.time()
        with stand.worker(fresh=False) as pid:
            while (left := killed + patience - time.time()) > 0:
                try:
                    notes = stand.notes(2, pid, patience=min(OTHER_JOBS_INTERVAL, left))
                except TimeoutError:
                    stand.put("one", "noop", 1)
                else:
                    print(
                        f"{peer.name}: started again {notes[1] - killed:.0f} s after the kill",
                        flush=True,
                    )
                    return {"back_after": notes[1] - killed}
    print(f"{peer.name}: not started again within {patience:.0f} s", flush=True)
    return {"back_after": None}
