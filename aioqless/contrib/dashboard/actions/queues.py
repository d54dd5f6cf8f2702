"""What can be done to a queue."""

from __future__ import annotations

from aioqless import validation
from aioqless.client.clearing import QUEUED, Clearing
from aioqless.contrib.dashboard.access import Role
from aioqless.contrib.dashboard.actions.act import Doing, Done, act


@act("pause")
async def pause(doing: Doing) -> str:
    """Let nobody pop from it."""
    queue = validation.checked("queue", doing.text("queue"))
    await doing.client.queue(queue).pause()
    return f"Queue {queue} is paused: what runs goes on, nothing else starts."


@act("unpause")
async def unpause(doing: Doing) -> str:
    """Let everybody pop from it again."""
    queue = validation.checked("queue", doing.text("queue"))
    await doing.client.queue(queue).unpause()
    return f"Queue {queue} goes on."


@act("clear", Role.ADMIN)
async def clear(doing: Doing) -> str:
    """Cancel its jobs that don't run, in steps."""
    queue = validation.checked("queue", doing.text("queue"))
    counts = await doing.client.queue(queue).counts()
    if not (total := sum(counts[state] for state in QUEUED)):
        raise ValueError(f"queue {queue} has no job that could be canceled")
    steps = Clearing(doing.client.store, queue, QUEUED).steps()

    async def step(left: int, count: int) -> tuple[int, int]:
        return await anext(steps, (0, 0))

    doing.board.bulks.begin(doing.who, "clear", "canceled", f"queue {queue}", total, step)
    return f"{total:,} jobs of {queue} are being canceled."


@act("forget", Role.ADMIN)
async def forget(doing: Doing) -> Done:
    """Take an empty queue off the list."""
    queue = doing.client.queue(doing.text("queue"))
    counts = await queue.counts()
    if held := sum(
        counts[what]
        for what in ("waiting", "running", "stalled", "scheduled", "depends", "recurring")
    ):
        raise ValueError(
            f"queue {queue.name} has {held:,} jobs: only an empty one can be taken off the list"
        )
    await queue.forget()
    return Done(f"Queue {queue.name} is off the list. It comes back with its next job.", "/queues")
