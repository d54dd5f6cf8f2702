"""Actions on a job set."""

from __future__ import annotations

from aioqless.contrib.dashboard.actions.action import ActionRequest


async def retry(request: ActionRequest) -> str:
    """Retry the failed members of a set, each in its queue."""
    name = request.text("name")
    count = await request.client.job_set(name).retry_failed()
    return f"{count:,} members of {name} re-queued."


async def cancel(request: ActionRequest) -> str:
    """Close a set, and cancel its members that have not ended."""
    name = request.text("name")
    count = await request.client.job_set(name).cancel()
    return f"Set {name} closed, {count:,} members canceled."


async def close(request: ActionRequest) -> str:
    """Close a set."""
    name = request.text("name")
    await request.client.job_set(name).close()
    return f"Set {name} closed."
