"""States of jobs, as tests query them."""

from __future__ import annotations

from aioqless import Client, JobRecord
from tests.conftest import Until


async def state_of(client: Client, jid: str) -> str | None:
    found = await client.jobs.get(jid)
    return found.state if found else None


async def after(client: Client, until: Until, jid: str, state: str) -> JobRecord:
    """Wait until a job is in a state, and return it."""

    async def there() -> JobRecord | None:
        found = await client.jobs.get(jid)
        return found if found and found.state == state else None

    return await until(there)
