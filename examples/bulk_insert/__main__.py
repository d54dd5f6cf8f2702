"""Put rows one by one, and let a worker insert them in bulks."""

from __future__ import annotations

import asyncio
import random

from aioqless import Client, JobFailed, Worker

from . import jobs


async def run(client: Client, count: int) -> tuple[int, int]:
    """Put rows and wait for them; return how many were inserted, and how many refused."""
    rows = [jobs.Row(f"sensor {n % 7}", random.uniform(-0.1, 1)) for n in range(count)]
    async with Worker(client, jobs):
        jids = await asyncio.gather(*(jobs.insert.put(row) for row in rows))
        results = await asyncio.gather(
            *(client.jobs.result(jid, timeout=30) for jid in jids), return_exceptions=True
        )
    refused = sum(isinstance(result, JobFailed) for result in results)
    return count - refused, refused


async def main() -> None:
    """Insert 1,000 rows."""
    async with Client(namespace="bulk-insert") as client:
        inserted, refused = await run(client, 1_000)
    print(f"{inserted} rows inserted, {refused} refused, in {len(jobs.sizes)} bulks")


if __name__ == "__main__":
    asyncio.run(main())
