"""What can be told to a worker."""

from __future__ import annotations

from aioqless.contrib.dashboard.access import Role
from aioqless.contrib.dashboard.actions.act import Doing, Done, act


@act("worker-quiet")
async def worker_quiet(doing: Doing) -> str:
    """Let it begin nothing more."""
    name = doing.text("worker")
    doing.board.served[name] = await doing.client.workers.quiet(name)
    return f"{name} begins nothing more; what runs goes on."


@act("worker-resume")
async def worker_resume(doing: Doing) -> str:
    """Let it go on."""
    name = doing.text("worker")
    doing.board.served[name] = await doing.client.workers.resume(name)
    return f"{name} goes on."


@act("worker-stop", Role.ADMIN)
async def worker_stop(doing: Doing) -> str:
    """Let it end when what runs has ended."""
    name = doing.text("worker")
    await doing.client.workers.stop(name)
    return f"{name} ends when what it runs has ended or was handed back."


@act("worker-subscribe")
async def worker_subscribe(doing: Doing) -> str:
    """Let it serve a queue too."""
    name, queue = doing.text("worker"), doing.text("queue").strip()
    limit = doing.number("limit", 0)
    doing.board.served[name] = await doing.client.workers.subscribe(
        name, queue, limit=round(limit) or None
    )
    return f"{name} serves {queue} until it ends."


@act("worker-unsubscribe")
async def worker_unsubscribe(doing: Doing) -> str:
    """Let it serve a queue no longer."""
    name, queue = doing.text("worker"), doing.text("queue").strip()
    doing.board.served[name] = await doing.client.workers.unsubscribe(name, queue)
    return f"{name} serves {queue} no longer."


@act("worker-deregister", Role.ADMIN)
async def worker_deregister(doing: Doing) -> Done:
    """Take it off the list of those known."""
    name = doing.text("worker")
    await doing.client.workers.deregister(name)
    return Done(f"{name} is off the list. If it lives, it comes back by itself.", "/workers")
