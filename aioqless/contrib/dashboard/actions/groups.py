"""What can be done to all jobs of a failure group, in steps that can be watched."""

from __future__ import annotations

from aioqless.client import Client
from aioqless.contrib.dashboard.access import Role
from aioqless.contrib.dashboard.actions.act import Doing, act
from aioqless.errors import HasDependents


@act("retry-all")
async def retry_all(doing: Doing) -> str:
    """Let all that failed in a group run again, each in its queue. What fails anew meanwhile isn't
    retried again."""
    group = doing.text("group")
    client = doing.client

    async def step(left: int, count: int) -> tuple[int, int]:
        return await client.jobs.retry_group(group, count), 0

    total = await _total(client, group)
    doing.board.bulks.begin(doing.who, "retry-all", "retried", group, total, step)
    return f"{total:,} jobs of {group} are being retried."


@act("cancel-all", Role.ADMIN)
async def cancel_all(doing: Doing) -> str:
    """Delete all that failed in a group; those that others wait for are left."""
    group = doing.text("group")
    client = doing.client

    async def step(left: int, count: int) -> tuple[int, int]:
        jids = await client.jobs.failed_jids(group, offset=left, count=count)
        return await _cancel(client, jids)

    total = await _total(client, group)
    doing.board.bulks.begin(doing.who, "cancel-all", "cancelled", group, total, step)
    return f"{total:,} jobs of {group} are being cancelled."


async def _cancel(client: Client, jids: list[str]) -> tuple[int, int]:
    """How many are gone, and how many had to be left since others wait for them."""
    if not jids:
        return 0, 0
    try:
        await client.jobs.cancel(*jids)
        return len(jids), 0
    except HasDependents:
        if len(jids) == 1:
            return 0, 1
        half = len(jids) // 2
        first, second = await _cancel(client, jids[:half]), await _cancel(client, jids[half:])
        return first[0] + second[0], first[1] + second[1]


async def _total(client: Client, group: str) -> int:
    (glance,) = await client.jobs.failures(group)
    if not glance.total:
        raise ValueError(f"nothing is in group {group!r} any more")
    return glance.total
