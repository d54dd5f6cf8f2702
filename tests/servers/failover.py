"""Kill masters under load and count which acknowledged writes survived.

`python -m tests.servers.failover [times [promise ...]]`.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import sys
import tempfile
import time
from pathlib import Path

from aioqless import Client, Durability
from tests.servers.load import Load, lost, until
from tests.servers.processes import SentinelSetup, Server, wheel

PROMISES: dict[str, Durability | None] = {
    "none": None,
    "replicas=1": Durability(replicas=1),
    "replicas=1, disk": Durability(replicas=1, disk=True, timeout=2.0),
}


async def kill_under_load(
    watched: SentinelSetup, load: Load, *, stall: float = 0.0, jobs: int = 500
) -> dict[str, float]:
    """Kill the master once `jobs` are acknowledged and return how many survived.

    Its replicas did not receive anything for the `stall` seconds before.
    """
    async with load.running() as ledgers:
        (ledger,) = ledgers.values()
        await until(lambda: len(ledger.put) >= jobs)
        before = len(ledger.put)
        old: Server = watched.master()
        others = [each for each in watched.servers if each is not old]
        if stall:
            for each in others:
                each.suspend()
            await asyncio.sleep(stall)
        old.kill()
        ledger.killed = time.monotonic()
        for each in others:
            each.resume()
        await until(lambda: len(ledger.put) >= before + jobs)
    async with Client(watched.url) as client:
        gone = await lost(client, ledger)
        assert await client.check() == []
    old.start()
    return {
        "put": len(ledger.put),
        "lost": len(gone),
        "refused": len(ledger.refused),
        "put again after": round(ledger.put_again, 1),
        "ran again after": round(ledger.ran_again, 1) if load.works else 0.0,
        "run twice": sum(len(times) > 1 for times in ledger.ran.values()),
    }


async def main(times: int, *names: str) -> None:
    """Print a row for each promise, or for the given ones, with new servers for each kill."""
    logging.getLogger("aioqless").setLevel(logging.ERROR)
    for name, stall in itertools.product(names or PROMISES, (0.0, 0.8)):
        rows = [await _row(PROMISES[name], stall) for _ in range(times)]
        what = f"{name}, {f'replicas behind by {stall} s' if stall else 'kill -9'}"
        print(
            f"{what}: {', '.join(f'{each} {[row[each] for row in rows]}' for each in rows[0])}",
            flush=True,
        )


async def _row(durability: Durability | None, stall: float) -> dict[str, float]:
    disk = bool(durability and durability.disk)
    options = ("--appendonly", "yes", "--appendfsync", "always") if disk else ()
    load = Load("", durability=durability, size=20_000 if stall else 10, works=not stall)
    with (
        tempfile.TemporaryDirectory() as folder,
        SentinelSetup(Path(folder), *options, program=wheel() if disk else None) as watched,
    ):
        load.url = watched.url
        return await kill_under_load(watched, load, stall=stall, jobs=100 if disk else 500)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 3, *sys.argv[2:]))
