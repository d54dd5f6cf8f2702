"""Actions on all jobs of a failure group, in steps with progress."""

from __future__ import annotations

from aioqless.client import Client
from aioqless.contrib.dashboard.actions.action import ActionRequest


async def retry_all(request: ActionRequest) -> str:
    """Retry all jobs of a group, each in its queue; jobs that fail meanwhile are left."""
    group, client = request.text("group"), request.client

    async def step(_skipped: int, count: int) -> tuple[int, int]:
        return await client.jobs.retry_group(group, count), 0

    total = await _count(client, group)
    request.dashboard.bulk_actions.start(request.user, "retry-all", "retried", group, total, step)
    return f"Retrying {total:,} jobs of {group}."


async def cancel_all(request: ActionRequest) -> str:
    """Cancel all jobs of a group, except those that other jobs depend on."""
    group, client = request.text("group"), request.client

    async def step(skipped: int, count: int) -> tuple[int, int]:
        jids = await client.jobs.failed_jids(group, offset=skipped, count=count)
        result = await client.jobs.cancel_many(jids)
        return len(jids) - len(result.kept), len(result.kept)

    total = await _count(client, group)
    request.dashboard.bulk_actions.start(request.user, "cancel-all", "deleted", group, total, step)
    return f"Deleting {total:,} jobs of {group}."


async def _count(client: Client, group: str) -> int:
    (summary,) = await client.jobs.failure_groups(group)
    if not summary.total:
        raise ValueError(f"group {group!r} has no jobs")
    return summary.total
