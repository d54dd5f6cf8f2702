"""The example of bulk handlers: rows that were put one by one are inserted by few statements."""

from __future__ import annotations

from aioqless import Client
from examples.bulk_insert import jobs
from examples.bulk_insert.__main__ import run


async def test_rows_are_inserted_in_bulks_and_wrong_ones_refused(client: Client) -> None:
    jobs.sizes.clear()
    inserted, refused = await run(client, 250)
    assert inserted + refused == 250 == sum(jobs.sizes)
    assert 0 < refused < 100 and 1 < max(jobs.sizes) <= 100
