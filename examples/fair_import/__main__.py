"""Import the files with turns and without, print the longest lag of each customer, draw both."""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import replace
from pathlib import Path

from aioqless import Client, Handler, Settings, Worker

from . import jobs
from .picture import draw

SLOTS = 4


async def run(client: Client, handler: Handler, large: int, small: int) -> list[jobs.Start]:
    """Put a large file, and three small ones while it is imported; return the starts of rows."""

    async def put(customer: str, rows: int) -> None:
        data = [handler.data(customer=customer, put_at=time.monotonic()) for _ in range(rows)]
        await client.put_many(data)

    async def receive(rows: int) -> None:
        while len(starts) < rows:
            start = await jobs.started.get()
            starts.append(replace(start, at=start.at - began))

    starts: list[jobs.Start] = []
    began = time.monotonic()
    await put("Acme", large)
    async with Worker(client, jobs, settings=Settings(concurrency=SLOTS)):
        for number, customer in enumerate(("Bolt", "Crab", "Dune"), 1):
            await receive(large * number // 5)
            await put(customer, small)
        await receive(large + 3 * small)
    return starts


async def main() -> str:
    """Import in both ways, and return the picture."""
    panels = {}
    async with Client(namespace="fair-import") as client:
        for title, handler in (
            ("Without fair turns", jobs.load_in_order),
            ("With fair turns", jobs.load),
        ):
            starts = panels[title] = await run(client, handler, large=480, small=12)
            for customer in dict.fromkeys(start.customer for start in starts):
                lag = max(start.lag for start in starts if start.customer == customer)
                print(f"{title}: rows of {customer} waited for {lag:.2f} s at most")
    return draw(panels)


if __name__ == "__main__":
    picture = Path(sys.argv[1] if sys.argv[1:] else "fair-turns.svg")
    picture.write_text(asyncio.run(main()), "utf-8")
    print(f"Drawn to {picture}")
