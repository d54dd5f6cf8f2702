"""The overview with its alarms, and the list of all queues."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from aioqless.client import Overview
from aioqless.client.coverage import Reason
from aioqless.client.failures import MAX_GROUPS, note_cut, sort_causes
from aioqless.client.queue_statistics import QueueOverview
from aioqless.contrib.dashboard.page_request import PAGE_SIZE, Page, PageRequest, address
from aioqless.contrib.dashboard.pages.failures import find_deploy, hide_secrets, read_causes
from aioqless.contrib.dashboard.pages.klasses import read_runs

MAX_QUEUES = 12
MAX_CAUSES = 6
MAX_WORKERS = 6
NEARLY_FULL = 0.9  # of the memory limit
ALARM_FOR = 3600  # seconds for which a lost worker is reported
SORTS = ("trouble", "name", "waiting", "running", "scheduled", "completed", "failures")


# What to do about jobs that wait, by reason, and whether it is urgent; paused queues aside.
ADVICE: dict[Reason, tuple[bool, str]] = {
    "no_worker": (True, "Start a worker for these queues."),
    "unknown_klass": (True, "Deploy the handler, or fix the name."),
    "workers_idle": (True, "Resume or restart the workers."),
    "rate_limit": (False, "Raise the limit if that is too slow."),
    "concurrency_limit": (False, "Raise the limit if that is too slow."),
    "workers_busy": (False, "Start more workers, or see what they run."),
}
# Queues come in this order, those with stalled jobs behind the second.
TROUBLES: tuple[Reason, ...] = (
    "no_worker", "unknown_klass", "workers_idle", "paused", "workers_busy", "concurrency_limit",
    "rate_limit",
)  # fmt: skip


class Alarm(NamedTuple):
    """A problem, what to do about it, and the path of the page that shows it.

    It is urgent if jobs don't run, or may be lost. `about` is its kind and what it is about,
    without numbers.
    """

    problem: str
    advice: str
    page: str
    is_urgent: bool
    about: str

    @property
    def key(self) -> str:
        """A digest of what it is about: it was dismissed if this was."""
        return hashlib.sha256(self.about.encode("utf-8", "surrogatepass")).hexdigest()[:16]


async def show_overview(request: PageRequest) -> Page:
    """Show the alarms, and the queues, failure groups and workers that matter most."""
    overview, client = await request.read_overview(), request.client
    workers = [each.name for each in overview.workers[:MAX_WORKERS]]
    causes = await read_causes(request, overview.failed)
    sort_causes(causes, overview.when)
    alarms, kept = find_alarms(overview), request.dashboard.dismissed
    if dismissed := kept.get(request.browser, ()):  # ended alarms are dropped
        keys = {each.key for each in alarms}
        kept[request.browser] = dismissed = tuple(key for key in dismissed if key in keys)
    values = {
        "queues": sorted(overview.queues, key=lambda queue: _urgency(overview, queue))[:MAX_QUEUES],
        "causes": note_cut(causes[:MAX_CAUSES], overview.failed),
        "shown": await hide_secrets(request, (each.latest for each in causes[:MAX_CAUSES])),
        "trend_groups": causes,
        "max_groups": MAX_GROUPS,
        "is_rising": any(each.is_rising(overview.when) for each in causes),
        "deploy": await find_deploy(request),
        "workers": await client.workers.working(*workers, most=1),
        "runs": await read_runs(request),
        "rates": request.dashboard.overviews.rates(),
        "rates_of": request.dashboard.overviews.rates,
        "problems": [each for each in alarms if each.key not in dismissed],
        "dismissed": bool(dismissed),
    }
    return Page("overview.html", "Overview", values)


async def list_queues(request: PageRequest) -> Page:
    """List all queues."""
    overview = await request.read_overview()
    search, sort = request.text("q").lower(), request.one_of("sort", SORTS)
    found = [each for each in overview.queues if search in each.name.lower()]
    if sort == "trouble":
        found.sort(key=lambda queue: _urgency(overview, queue))
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
        "rates_of": request.dashboard.overviews.rates,
    }
    return Page("queues.html", "Queues", values)


def _urgency(overview: Overview, queue: QueueOverview) -> tuple[object, ...]:
    """Return a sort key: stalled jobs and delays by their reason, then by number of jobs."""
    delay = overview.coverage.delays.get(queue.name)
    return (
        TROUBLES.index(delay.reason) if delay else 1.5 if queue.stalled else len(TROUBLES),
        -delay.lag if delay else 0,
        -queue.stalled,
        -queue.waiting,
        -queue.running,
        -queue.completed,
        queue.name,
    )


def find_alarms(overview: Overview) -> list[Alarm]:
    """Return what is wrong, the urgent first."""
    found = [*_worker_alarms(overview), *_queue_alarms(overview), *_redis_alarms(overview)]
    return sorted(found, key=lambda alarm: not alarm.is_urgent)


def _worker_alarms(overview: Overview) -> list[Alarm]:
    found = []
    if not overview.workers and overview.sum("waiting"):
        advice = "Start one: aioqless worker your.module -q QUEUE"
        problem = "Jobs are waiting, and there is no worker."
        found.append(Alarm(problem, advice, "/workers", True, "workers"))
    else:
        found += _delay_alarms(overview)
    if lost := [name for name, seen in overview.lost.items() if seen > overview.when - ALARM_FOR]:
        advice = "Were they killed? Other workers run their jobs again."
        problem = f"Workers disappeared without shutting down: {_join(lost)}."
        found.append(Alarm(problem, advice, "/workers", True, f"lost {sorted(lost)}"))
    return found


def _delay_alarms(overview: Overview) -> list[Alarm]:
    found = []
    for reason, (is_urgent, advice) in ADVICE.items():
        delays = [each for each in overview.coverage.delays.values() if each.reason == reason]
        if not delays:
            continue
        names = [each.queue for each in delays]
        problem = f"Jobs are waiting, and no worker takes them: {_join(names)}."
        if reason != "no_worker":
            others = f" {_join(names[1:])} too." if len(names) > 1 else ""
            problem = f"Jobs are waiting in {_join(names[:1])}: {delays[0].detail}.{others}"
        page = address("/queue", name=names[0]) if len(names) == 1 else "/queues"
        found.append(Alarm(problem, advice, page, is_urgent, f"{reason} {sorted(names)}"))
    return found


def _queue_alarms(overview: Overview) -> list[Alarm]:
    found = []
    if stalled := [queue.name for queue in overview.queues if queue.stalled]:
        problem = f"{overview.sum('stalled'):,} stalled in {_join(stalled)}: their locks expired."
        advice = "They run again when a worker polls these queues."
        found.append(Alarm(problem, advice, "/queues", True, f"stalled {sorted(stalled)}"))
    if paused := [
        queue.name for queue in overview.queues if queue.paused and (queue.waiting or queue.stalled)
    ]:
        problem = f"Paused queues with waiting jobs: {_join(paused)}."
        advice = "Resume them to continue."
        found.append(Alarm(problem, advice, "/queues", False, f"paused {sorted(paused)}"))
    return found


def _redis_alarms(overview: Overview) -> list[Alarm]:
    found, server = [], overview.server
    if server.memory_limit and server.memory > NEARLY_FULL * server.memory_limit:
        advice = (
            "New jobs are rejected when its memory is full. Raise maxmemory or run waiting jobs."
        )
        problem = "The memory of Redis is nearly full."
        found.append(Alarm(problem, advice, "/redis", True, "memory"))
    if server.memory_limit and server.eviction_policy != "noeviction":
        problem = f"Redis may evict jobs (maxmemory-policy {server.eviction_policy})."
        advice = "Set maxmemory-policy to noeviction."
        found.append(Alarm(problem, advice, "/redis", True, "eviction"))
    if not server.saved:
        advice = "Check its log: jobs may be lost when it exits."
        problem = "Redis cannot write to its disk."
        found.append(Alarm(problem, advice, "/redis", True, "disk"))
    if archive := overview.archive.describe_problem(overview.when):
        problem = f"{archive[0].upper()}{archive[1:]}."
        advice = "Run the archiver, or turn the archive off."
        found.append(Alarm(problem, advice, "/config", False, "archive"))
    return found


def _join(names: list[str]) -> str:
    shown = [name if len(name) <= 60 else name[:59] + "…" for name in names[:3]]
    return ", ".join(shown) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")
