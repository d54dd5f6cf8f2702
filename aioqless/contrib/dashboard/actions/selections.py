"""Actions on all jobs that a search has found, in steps with progress."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from aioqless import validation
from aioqless.contrib.dashboard.actions.action import ActionRequest, Redirect
from aioqless.contrib.dashboard.bulk_actions import STEP
from aioqless.contrib.dashboard.page_request import address
from aioqless.contrib.dashboard.pages.job_lists import ACTS, drop_hidden, parse_filter
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
    """Change all jobs of a filter, which is searched again, to its end, while they are changed.

    The page may have searched a part only: then the number of jobs is an upper bound until the end.
    """
    text, total = request.text("filter"), int(request.number("found"))
    is_partial = bool(request.form.get("partial"))
    wanted = parse_filter(text, request.dashboard, sees_data=request.sees_data, is_narrowed=True)
    wanted &= JobFilter.parse(f"{ACTS[name].condition} {more}")
    if total < 1 and not is_partial:
        raise ValueError("no job was found")
    handled = 0
    pages = request.client.jobs.filter(str(wanted), count=STEP)

    async def step(_skipped: int, _count: int) -> tuple[int, int]:
        nonlocal handled
        async for page in pages:
            jids = await drop_hidden(request.client, request.dashboard.redaction, wanted, page.jids)
            handled += len(jids)
            bulk.total = handled + (max(1, page.total - page.searched) if page.cursor else 0)
            done = await change(jids) if jids else 0
            if finish is not None and not page.cursor:
                done += await finish()
            if jids:
                return done, len(jids) - done
        return 0, 0

    bulk = request.dashboard.bulk_actions.start(
        request.user, request.form, f"select-{name}", verb, text, max(1, total), step=step
    )
    jobs = "All jobs of the filter" if is_partial else f"{total:,} jobs"
    return Redirect(f"{jobs} are being {verb}.", address("/jobs", filter=text))
