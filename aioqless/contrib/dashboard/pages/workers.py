"""The list of workers, and one worker with its jobs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from statistics import median

from aioqless.client.workers import WorkerState
from aioqless.contrib.dashboard.page_request import Page, PageRequest
from aioqless.contrib.metrics import WorkerSample
from aioqless.errors import CommandRefused, NoSuchWorker

WORKERS_PER_PAGE = 50
MAX_JOBS = 100
HISTORY = 8 * 3600  # seconds
ANSWER_TIMEOUT = 0.5  # seconds
# Memory grows if the median of each quarter of the history is above the one before.
LEAST_SAMPLES = 60  # minutes
GROWTH_EVERY = 60.0  # seconds: there is a sample per minute
LEAST_GROWTH, LEAST_SHARE = 32 << 20, 0.2  # bytes, and of what it was


async def list_workers(request: PageRequest) -> Page:
    """List the workers, those seen last first."""
    overview = await request.read_overview()
    search = request.text("q").lower()
    names = [each.name for each in overview.workers if search in each.name.lower()]
    page = names[request.offset : request.offset + WORKERS_PER_PAGE]
    living = [name for name in page if name not in overview.lost]

    async def read_histories() -> list[Sequence[WorkerSample]]:
        return await asyncio.gather(*map(request.client.metrics.worker_history, page))

    histories = await request.dashboard.cached(
        ("histories", *page), read_histories, least=GROWTH_EVERY
    )
    by_name = dict(zip(page, histories, strict=True))
    values = {
        "workers": await request.client.workers.working(*page, most=2) if page else [],
        "memory": {name: [each.memory for each in samples] for name, samples in by_name.items()},
        "growth": {
            name: growth for name, samples in by_name.items() if (growth := find_growth(samples))
        },
        "facts": await request.client.metrics.workers(*living) if living else {},
        "total": len(names),
        "search": request.text("q"),
        "now": overview.when,
    }
    return Page("workers.html", "Workers", values)


def find_growth(history: Sequence[WorkerSample]) -> tuple[float, float] | None:
    """Return by how many bytes memory has grown, in how many seconds; None if it hasn't."""
    if len(history) < LEAST_SAMPLES:
        return None
    quarter = len(history) // 4
    parts = [history[-quarter * number :][:quarter] for number in (4, 3, 2, 1)]
    levels = [median(each.memory for each in part) for part in parts]
    grown = levels[-1] - levels[0]
    if grown < max(LEAST_GROWTH, LEAST_SHARE * levels[0]) or levels != sorted({*levels}):
        return None
    return grown, history[-1].start - history[0].start


async def show_worker(request: PageRequest) -> Page:
    """Show a worker, its jobs and the queues that it serves."""
    name = request.text("name")
    if not name:
        raise KeyError(name)
    (worker,) = await request.client.workers.working(name, most=MAX_JOBS)
    states = request.dashboard.worker_states
    # asking takes a subscription, which a live page must not repeat with each update
    if worker.alive and not request.is_live:
        states[name] = await _ask_state(request, name)
    metrics, now = request.client.metrics, time.time()
    history = await metrics.worker_history(name)
    values = {
        "worker": worker,
        "state": states.get(name),
        "facts": None if worker.alive is False else (await metrics.workers(name)).get(name),
        "memory": {each.start: each.memory for each in history},
        "busy": {each.start: each.busy for each in history},
        "begin": max(now - HISTORY, history[0].start) if history else now,
        "now": now,
        "marks": await metrics.marks(HISTORY),
    }
    return Page("worker.html", f"{name} · worker", values)


async def _ask_state(request: PageRequest, name: str) -> WorkerState | None:
    """Ask a worker for its state; None if it does not answer."""
    try:
        return await request.client.workers.show(name, timeout=ANSWER_TIMEOUT)
    except (NoSuchWorker, CommandRefused):
        return None
