"""Actions on all jobs with a tag, or of a klass, in steps with progress."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Awaitable, Callable

from aioqless import validation
from aioqless.contrib.dashboard.actions.action import ActionRequest


async def retry(request: ActionRequest) -> str:
    """Retry the failed jobs, each in its queue."""
    change = request.client.jobs.retry_many
    return await _act(request, "select-retry", "retried", ("failed",), change)


async def move(request: ActionRequest) -> str:
    """Move the waiting and scheduled jobs to another queue."""
    queue = validation.check_name("queue", request.text("queue").strip())

    async def change(jids: list[str]) -> int:
        return await request.client.jobs.move_many(jids, queue)

    return await _act(request, "select-move", "moved", ("waiting", "scheduled"), change)


async def cancel(request: ActionRequest) -> str:
    """Delete the jobs that are not complete, except dependencies of other jobs."""
    kept: list[str] = []

    async def change(jids: list[str]) -> int:
        result = await request.client.jobs.cancel_many(jids)
        kept.extend(result.kept)
        return result.canceled

    async def finish() -> int:
        return (await request.client.jobs.cancel_many(kept)).canceled

    states = ("waiting", "scheduled", "depends", "running", "stalled", "failed")
    return await _act(request, "select-cancel", "deleted", states, change, finish)


async def _act(
    request: ActionRequest,
    action: str,
    verb: str,
    states: tuple[str, ...],
    change: Callable[[list[str]], Awaitable[int]],
    finish: Callable[[], Awaitable[int]] | None = None,
) -> str:
    """Change the jobs in some states; with the field `dry_run`, only count them.

    `finish` is called after the last step: it deletes dependencies of jobs of a later step.
    """
    tag = request.form.get("tag") or None
    klass = request.text("klass") if tag is None else None
    jids = await request.client.jobs.select(tag=tag, klass=klass, states=states)
    total, name = len(jids), str(tag or klass)
    if request.form.get("dry_run"):
        return f"{total:,} jobs of {name} would be {verb}."
    if not jids:
        raise ValueError(f"no job of {name} can be {verb}")
    left = iter(jids)

    async def step(_skipped: int, count: int) -> tuple[int, int]:
        portion = list(itertools.islice(left, count))
        done = await change(portion)
        if finish is not None and not operator.length_hint(left):
            done += await finish()
        return done, len(portion) - done

    request.dashboard.bulk_actions.start(request.user, action, verb, name, total, step)
    return f"{total:,} jobs of {name} are being {verb}."
