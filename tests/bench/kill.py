"""What becomes of a running job whose worker is killed with -9: does it start again, and when?"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.bench.peers import Figures, Peer, Stand, installed
from tests.bench.server import server

PATIENCE = 660.0  # seconds within which all come back that ever do, by their defaults
# seconds between other jobs that arrive meanwhile: some peers look for lost ones only as they read
# new ones
OTHERS = 30.0


def run_kill(peers: Sequence[Peer], patience: float) -> Figures:
    """Try all peers at the same time, each with a Redis of its own; returns {peer: {back_after} or
    {error}}, None for a job that did not come back within `patience` seconds."""
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
    except Exception as error:  # one peer's trouble must not end the run of the others
        print(f"{peer.name}: {error}", flush=True)
        return {"error": str(error)}


def _kill_one(peer: Peer, patience: float) -> Figures:
    with server() as started, tempfile.TemporaryDirectory(prefix="aioqless-bench-") as folder:
        stand = Stand(peer, started, Path(folder))
        stand.put("one", "hang", 1)
        with stand.worker() as pid:
            stand.notes(1, pid, patience=60)
            time.sleep(1)
        killed = time.time()
        with stand.worker(fresh=False) as pid:
            while (left := killed + patience - time.time()) > 0:
                try:
                    notes = stand.notes(2, pid, patience=min(OTHERS, left))
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
