"""How many commands Redis has run, also in scripts."""

from __future__ import annotations

from aioqless import Client


async def count_commands(client: Client) -> int:
    """Return the number of commands that Redis has run. The one that asks counts the next time."""
    stats = await client.redis.info("commandstats")
    return sum(each["calls"] for each in stats.values())
