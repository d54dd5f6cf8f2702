"""Actions on a running worker."""

from __future__ import annotations

from aioqless.contrib.dashboard.actions.action import ActionRequest, Redirect


async def quiet(request: ActionRequest) -> str:
    """Pause a worker: it finishes its running jobs and takes no new ones."""
    name = request.text("worker")
    request.dashboard.worker_states[name] = await request.client.workers.quiet(name)
    return f"{name} takes no new jobs. Running jobs finish."


async def resume(request: ActionRequest) -> str:
    """Resume a paused worker."""
    name = request.text("worker")
    request.dashboard.worker_states[name] = await request.client.workers.resume(name)
    return f"{name} resumed."


async def stop(request: ActionRequest) -> str:
    """Shut a worker down gracefully."""
    name = request.text("worker")
    await request.client.workers.stop(name)
    return f"{name} stops when its running jobs have ended or were released."


async def subscribe(request: ActionRequest) -> str:
    """Let a worker serve another queue."""
    name, queue = request.text("worker"), request.text("queue").strip()
    limit = round(request.number("limit", 0)) or None
    request.dashboard.worker_states[name] = await request.client.workers.subscribe(
        name, queue, limit=limit
    )
    return f"{name} serves {queue} until it ends."


async def unsubscribe(request: ActionRequest) -> str:
    """Let a worker stop serving a queue."""
    name, queue = request.text("worker"), request.text("queue").strip()
    request.dashboard.worker_states[name] = await request.client.workers.unsubscribe(name, queue)
    return f"{name} serves {queue} no longer."


async def deregister(request: ActionRequest) -> Redirect:
    """Remove a worker from the list."""
    name = request.text("worker")
    await request.client.workers.deregister(name)
    return Redirect(f"{name} is off the list. If it lives, it comes back by itself.", "/workers")
