"""States of jobs and processes, as tests query them."""

from __future__ import annotations

import os
from pathlib import Path

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


def is_alive(pid: int) -> bool:
    """Return whether there is a process of this number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def is_gone(pid: int) -> bool:
    """Return whether a process has ended, even if its parent has not waited for it yet."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # it may end while it is read
        return not is_alive(pid)
    return state == "Z"
