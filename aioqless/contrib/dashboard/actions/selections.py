"""Actions on all jobs that a search has found, in steps with progress."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from aioqless import validation
from aioqless.contrib.dashboard.actions.action import ActionRequest, Redirect
from aioqless.contrib.dashboard.bulk_actions import STEP
from aioqless.contrib.dashboard.page_request import address
from aioqless.contrib.dashboard.pages.job_lists import ACTS, parse_filter
from aioqless.contrib.job_filter import JobFilter, Text


async def retry(request: ActionRequest) -> Redirect:
    """Retry the failed jobs, each in its queue."""
    return _act(request, "retry", "retried", request.client.jobs.retry_many)


async def move(request: ActionRequest) -> Redirect:
    """Move the waiting and scheduled jobs to another queue."""
    queue = validation.check_name("queue", request.text("queue").strip())
    change = partial(request.client.jobs.move_many, queue=queue)
    return _act(request, "move", "moved", change, f"-queue:{Text(queue)}")


async def tag(request: ActionRequest) -> Redirect:
    """Add tags to the jobs."""
    names = [name for each in request.text("tags").split(",") if (name := each.strip())]
    tags, tag_many = validation.check_names("tags", names), request.client.jobs.tag_many
    return _act(request, "tag", "tagged", lambda jids: tag_many(jids, *tags))


async def set_priority(request: ActionRequest) -> Redirect:
    """Set the priority of the jobs that have not ended."""
    priority = request.number("priority")
    change = partial(request.client.jobs.set_priority_many, priority=priority)
    return _act(request, "priority", "changed", change)


async def cancel(request: ActionRequest) -> Redirect:
    """Delete the jobs that are not complete, except dependencies of other jobs."""
    kept: list[str] = []

    async def change(jids: list[str]) -> int:
        result = await request.client.jobs.cancel_many(jids)
        kept.extend(result.kept)
        return result.canceled

    async def finish() -> int:  # deletes dependencies of jobs of a later step
        return (await request.client.jobs.cancel_many(kept)).canceled

    return _act(request, "cancel", "deleted", change, finish=finish)


def _act(
    request: ActionRequest,
    name: str,
    verb: str,
    change: Callable[[list[str]], Awaitable[int]],
    more: str = "",
    finish: Callable[[], Awaitable[int]] | None = None,
) -> Redirect:
    """Change the jobs that a search has found, up to the cursor at which it stopped.

    They are searched again, so that only jobs are changed that still match.
    """
    text, total = request.text("filter"), int(request.number("found"))
    wanted = parse_filter(text, request.dashboard, sees_data=request.sees_data, is_narrowed=True)
    wanted &= JobFilter.parse(f"{ACTS[name].condition} {more}")
    if total < 1:
        raise ValueError("no job was found")
    stop, handled = request.form.get("stop", ""), 0
    pages = request.client.jobs.filter(str(wanted), stop=stop, count=STEP)

    async def step(_skipped: int, count: int) -> tuple[int, int]:
        nonlocal handled
        async for page in pages:
            jids = page.jids[:count]
            handled += len(jids)
            done = await change(jids) if jids else 0
            if finish is not None and (not page.cursor or handled >= total):
                done += await finish()
            if jids:
                return done, len(jids) - done
        return 0, 0

    request.dashboard.bulk_actions.start(
        request.user, request.form, f"select-{name}", verb, text, total, step=step
    )
    return Redirect(f"{total:,} jobs are being {verb}.", address("/jobs", filter=text))
