"""Actions on a queue."""

from __future__ import annotations

from aioqless import validation
from aioqless.client.queue_clearing import QUEUED, ClearResult, clear_queue
from aioqless.contrib.dashboard.actions.action import ActionRequest, Redirect

HELD = ("waiting", "running", "stalled", "scheduled", "depends", "recurring")


async def pause(request: ActionRequest) -> str:
    """Pause a queue."""
    queue = validation.check_name("queue", request.text("queue"))
    await request.client.queue(queue).pause()
    return f"Queue {queue} paused. Running jobs finish."


async def resume(request: ActionRequest) -> str:
    """Resume a paused queue."""
    queue = validation.check_name("queue", request.text("queue"))
    await request.client.queue(queue).resume()
    return f"Queue {queue} resumed."


async def clear(request: ActionRequest) -> str:
    """Cancel the jobs of a queue that are not running, in steps."""
    queue = request.client.queue(validation.check_name("queue", request.text("queue")))
    counts = await queue.counts()
    if not (total := sum(getattr(counts, state) for state in QUEUED)):
        raise ValueError(f"queue {queue.name} has no waiting, scheduled or dependent jobs")
    steps = clear_queue(request.client.internals.store, queue.name, QUEUED)

    async def step(_skipped: int, _count: int) -> tuple[int, int]:
        cleared = await anext(steps, ClearResult())
        return cleared.canceled, cleared.kept

    request.dashboard.bulk_actions.start(
        request.user, request.form, "clear", "deleted", f"queue {queue.name}", total, step=step
    )
    return f"Deleting {total:,} jobs of {queue.name}."


async def forget(request: ActionRequest) -> Redirect:
    """Remove an empty queue from the list."""
    queue = request.client.queue(request.text("queue"))
    counts = await queue.counts()
    if held := sum(getattr(counts, state) for state in HELD):
        raise ValueError(
            f"queue {queue.name} has {held:,} jobs: only an empty queue can be removed"
        )
    await queue.forget()
    return Redirect(f"Queue {queue.name} removed. Its next job adds it again.", "/queues")
