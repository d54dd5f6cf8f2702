"""The overview with its alarms, and the list of all queues."""

from __future__ import annotations

from typing import NamedTuple

from aioqless.client.queue_statistics import QueueOverview
from aioqless.contrib.dashboard.page_request import PAGE_SIZE, Page, PageRequest
from aioqless.contrib.dashboard.sampler import ALARM_FOR, Sample

MAX_QUEUES = 12
MAX_GROUPS = 6
MAX_WORKERS = 6
NEARLY_FULL = 0.9  # of the memory limit
SORTS = ("trouble", "name", "waiting", "running", "scheduled", "completed", "failures")


class Alarm(NamedTuple):
    """A problem, what to do about it, and the page that shows it."""

    problem: str
    advice: str
    page: str


async def show_overview(request: PageRequest) -> Page:
    """Show the alarms, and the queues, failure groups and workers that matter most."""
    sampler, client = request.dashboard.sampler, request.client
    sample = await sampler.refresh(client)
    groups = sorted(sample.failed, key=lambda name: -sample.failed[name])[:MAX_GROUPS]
    workers = [each.name for each in sample.workers[:MAX_WORKERS]]
    values = {
        "queues": sorted(sample.queues, key=lambda queue: _urgency(sample, queue))[:MAX_QUEUES],
        "groups": await client.jobs.failures(*groups) if groups else [],
        "workers": await client.workers.working(*workers, most=1),
        "rates": sampler.rates(),
        "rates_of": sampler.rates,
        "problems": find_alarms(sample),
    }
    return Page("overview.html", "Overview", values)


async def list_queues(request: PageRequest) -> Page:
    """List all queues."""
    sample = await request.dashboard.sampler.refresh(request.client)
    search, sort = request.text("q").lower(), request.one_of("sort", SORTS)
    found = [each for each in sample.queues if search in each.name.lower()]
    if sort == "trouble":
        found.sort(key=lambda queue: _urgency(sample, queue))
    elif sort == "name":
        found.sort(key=lambda each: each.name.lower())
    else:
        found.sort(key=lambda each: (-getattr(each, sort), each.name))
    values = {
        "queues": found[request.offset : request.offset + PAGE_SIZE],
        "total": len(found),
        "search": request.text("q"),
        "sort": sort,
        "sorts": SORTS,
        "rates_of": request.dashboard.sampler.rates,
    }
    return Page("queues.html", "Queues", values)


def _urgency(sample: Sample, queue: QueueOverview) -> tuple[object, ...]:
    """Return a sort key: unserved and stalled first, then paused with jobs, then by length."""
    return (
        queue.name not in sample.unserved,
        -queue.stalled,
        not (queue.paused and queue.waiting),
        -queue.waiting,
        -queue.running,
        -queue.completed,
        queue.name,
    )


def find_alarms(sample: Sample) -> list[Alarm]:
    """Return what is wrong."""
    return [*_worker_alarms(sample), *_queue_alarms(sample), *_redis_alarms(sample)]


def _worker_alarms(sample: Sample) -> list[Alarm]:
    found = []
    if not sample.workers and sample.sum("waiting"):
        advice = "Start one: aioqless worker your.module -q QUEUE"
        found.append(Alarm("Jobs are waiting, and there is no worker.", advice, "/workers"))
    elif sample.unserved:
        problem = f"Jobs are waiting, and no worker takes them: {_join(list(sample.unserved))}."
        found.append(Alarm(problem, "Start a worker for these queues.", "/queues"))
    if lost := [name for name, seen in sample.lost.items() if seen > sample.when - ALARM_FOR]:
        advice = "They may have been killed. Their jobs run again when the locks expire."
        found.append(
            Alarm(f"Workers disappeared without shutting down: {_join(lost)}.", advice, "/workers")
        )
    return found


def _queue_alarms(sample: Sample) -> list[Alarm]:
    found = []
    if stalled := [queue.name for queue in sample.queues if queue.stalled]:
        problem = (
            f"{sample.sum('stalled'):,} stalled in {_join(stalled)}: their workers stopped sending "
            "heartbeats."
        )
        advice = "They run again when a worker polls these queues."
        found.append(Alarm(problem, advice, "/queues"))
    if paused := [
        queue.name for queue in sample.queues if queue.paused and (queue.waiting or queue.stalled)
    ]:
        problem = f"Paused queues with waiting jobs: {_join(paused)}."
        found.append(Alarm(problem, "Resume them to continue.", "/queues"))
    return found


def _redis_alarms(sample: Sample) -> list[Alarm]:
    found, server = [], sample.server
    if server.memory_limit and server.memory > NEARLY_FULL * server.memory_limit:
        advice = "New jobs are rejected when its memory is full. Raise maxmemory or drain queues."
        found.append(Alarm("The memory of Redis is nearly full.", advice, "/redis"))
    if server.memory_limit and server.eviction_policy != "noeviction":
        problem = f"Redis may evict jobs (maxmemory-policy {server.eviction_policy})."
        found.append(Alarm(problem, "Set maxmemory-policy to noeviction.", "/redis"))
    if not server.saved:
        advice = "Check its log: jobs may be lost when it exits."
        found.append(Alarm("Redis cannot write to its disk.", advice, "/redis"))
    if archive := sample.archive_problem:
        problem = f"{archive[0].upper()}{archive[1:]}."
        found.append(Alarm(problem, "Run the archiver, or turn the archive off.", "/config"))
    return found


def _join(names: list[str]) -> str:
    shown = [name if len(name) <= 60 else name[:59] + "…" for name in names[:3]]
    return ", ".join(shown) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")
