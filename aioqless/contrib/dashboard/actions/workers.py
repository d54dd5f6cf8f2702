"""Actions on a running worker."""

from __future__ import annotations

from aioqless.contrib.dashboard.actions.action import ActionRequest, Redirect


async def pause(request: ActionRequest) -> str:
    """Pause a worker: it finishes its running jobs and takes no new ones."""
    name = request.text("worker")
    request.dashboard.worker_states[name] = await request.client.workers.pause(name)
    return f"Worker {name} paused. Running jobs finish."


async def resume(request: ActionRequest) -> str:
    """Resume a paused worker."""
    name = request.text("worker")
    request.dashboard.worker_states[name] = await request.client.workers.resume(name)
    return f"Worker {name} resumed."


async def stop(request: ActionRequest) -> str:
    """Shut a worker down gracefully."""
    name = request.text("worker")
    await request.client.workers.stop(name)
    return f"Worker {name} is shutting down: running jobs finish or are released."


async def subscribe(request: ActionRequest) -> str:
    """Let a worker serve another queue."""
    name, queue = request.text("worker"), request.text("queue").strip()
    limit = round(request.number("limit", 0)) or None
    request.dashboard.worker_states[name] = await request.client.workers.subscribe(
        name, queue, limit=limit
    )
    return f"Worker {name} serves {queue} until it exits."


async def unsubscribe(request: ActionRequest) -> str:
    """Let a worker stop serving a queue."""
    name, queue = request.text("worker"), request.text("queue").strip()
    request.dashboard.worker_states[name] = await request.client.workers.unsubscribe(name, queue)
    return f"Worker {name} no longer serves {queue}."


async def deregister(request: ActionRequest) -> Redirect:
    """Remove a worker from the list."""
    name = request.text("worker")
    await request.client.workers.deregister(name)
    return Redirect(f"Worker {name} removed. If it is alive, it reappears.", "/workers")
