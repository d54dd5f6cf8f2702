"""The jobs: one for each row of a file, one that puts them, and one that writes the results."""

from __future__ import annotations

import asyncio
import csv
from collections.abc import Iterator
from pathlib import Path

import aioqless
from aioqless.contrib.job_sets import set_of

VAT = 1.19


@aioqless.job(queue="rows", result_ttl=86400)
async def store(job: aioqless.Job, price: str) -> float:
    """Handle a row; it fails if the price is no number."""
    job.progress(0.5, "a real import would store the row here")
    return round(float(price) * VAT, 2)


@aioqless.job(queue="imports")
async def load(job: aioqless.Job, path: str) -> None:
    """Put a job for each row into the set that this job is a member of.

    The jid of a row is made of the set's name, so that it is put once if this job runs again.
    """
    rows = set_of(job)
    await rows.put_many(_rows(path, rows.name))


def _rows(path: str, name: str) -> Iterator[aioqless.NewJob]:
    with Path(path).open(newline="") as file:
        for number, row in enumerate(csv.DictReader(file), 1):
            new = store.data(price=row["price"])
            yield new.with_options(jid=f"{name}-{number}", if_exists="keep")


@aioqless.job(queue="imports")
async def report(_: aioqless.Job, name: str, folder: str) -> None:
    """Write the results of a set to a file."""
    client = aioqless.Client.current()
    rows = {
        int(jid.rpartition("-")[2]): price
        async for jid, price in client.job_set(name).results(store)
    }
    await asyncio.to_thread(_write, Path(folder, f"{name}.csv"), rows)


def _write(path: Path, rows: dict[int, float]) -> None:
    with path.with_suffix(".part").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["row", "price"])
        writer.writerows(sorted(rows.items()))
    path.with_suffix(".part").replace(path)
