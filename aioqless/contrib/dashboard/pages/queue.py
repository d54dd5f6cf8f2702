"""One queue: its jobs by state, its limits and workers, and its statistics."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

import msgspec

from aioqless.client.breakdown import (
    SAMPLE,
    SAMPLED,
    choose_state,
    list_fields,
    read_shares,
    sample_jids,
)
from aioqless.client.config import Value, describe_option
from aioqless.client.coverage import QueueLimits, find_coverage, find_serving, read_limits
from aioqless.client.queue_statistics import QueueCounts
from aioqless.contrib.dashboard.generated_commands import DashboardCommands
from aioqless.contrib.dashboard.page_request import PAGE_SIZE, Page, PageRequest
from aioqless.contrib.dashboard.pages.job import show_key
from aioqless.contrib.dashboard.redaction import HIDDEN
from aioqless.contrib.job_filter import Text

DAY = 86_400
MAX_SERVING, MAX_FACTS = 12, 100  # workers that are named, and whose slots are read
# The options of a queue by their ending, as the page calls them.
ENDINGS = {
    "max-concurrency": "Concurrency limit",
    "rate-limit": "Rate limit",
    "max-length": "Maximum length",
    "heartbeat": "Lock duration",
}
MAX_KEYS = 8  # whose limits are shown
TABS = (
    "waiting", "running", "scheduled", "stalled", "depends", "breakdown", "recurring", "tenants",
    "statistics",
)  # fmt: skip
ENDED = ("complete", "failed")  # also sampled, by a search
SEARCH_TIME = 0.1  # seconds


async def show_queue(request: PageRequest) -> Page:
    """Show a queue."""
    name, tab = request.text("name"), request.one_of("tab", TABS)
    if not name:
        raise KeyError(name)
    queue, overviews = request.client.queue(name), request.dashboard.overviews
    counts = await queue.counts()
    # A live page shows workers and failures as of the overview that all pages share.
    workers, failed = overviews.latest.workers, overviews.latest.failed
    if not request.is_live:
        workers = tuple(await request.client.workers.counts())
        failed = await request.client.jobs.failed_counts()
    store = request.client.internals.store
    limits, now = await read_limits(store, [name]), await store.now()
    coverage = find_coverage([counts], workers, now, limits, overviews.latest.started)
    serving, metrics = find_serving(name, workers), request.client.metrics
    values: dict[str, object] = {
        "queue": counts,
        "tab": tab,
        "tabs": TABS,
        "jobs": [],
        "total": 0,
        "rates": overviews.rates(name),
        "failed": sum(count for group, count in failed.items() if group.startswith(f"{name}-")),
        "delay": coverage.delays.get(name),
        "lag": limits[name].lag,
        "limits": await _read_options(request, counts, limits[name]),
        "serving": serving,
        "facts": await metrics.workers(*[each.name for each in serving[:MAX_FACTS]]),
        "max_serving": MAX_SERVING,
        "known": any(each.name == name for each in overviews.latest.queues),
    }
    if tab in ("waiting", "running", "scheduled"):
        read = partial(_read_usage, request, name)
        values["usage"] = await request.shared(("usage", name, request.sees_data), read)
    if tab == "statistics":
        now = round(time.time())
        day = request.number("day", now, 0, 10**11)
        values |= {
            "day": day - day % DAY,
            "stats": await queue.stats(day),
            "runs": await request.dashboard.cached(
                ("runs", name, day - day % DAY), partial(metrics.of_day, name, day)
            ),
            "days": await request.shared(("days", name), queue.days),
            "today": now // DAY * DAY,
        }
    elif tab == "breakdown":
        state = request.one_of("of", ("", *SAMPLED, *ENDED))
        state = state or choose_state(counts)
        if state in ENDED:
            jids, values["searched"] = await _search_jobs(request, name, state)
            values["total"] = len(jids)
        else:
            values["total"] = total = getattr(counts, state)
            jids = await sample_jids(queue, state, total)
        sampled, shares = await _read_shares(request, jids)
        values |= {"state": state, "states": SAMPLED + ENDED, "sampled": sampled, "shares": shares}
    elif tab == "recurring":
        jobs = await request.client.recurring.page(name, offset=request.offset, count=PAGE_SIZE)
        values |= {"jobs": jobs, "total": counts.recurring}
    elif tab == "tenants":
        values["tenants"] = await queue.tenants(offset=request.offset, count=PAGE_SIZE)
        # A full page may show fewer: tenants without jobs are left out.
        beyond = request.offset + PAGE_SIZE
        values["has_more"] = bool(await queue.tenants(offset=beyond, count=PAGE_SIZE))
    else:
        jids = await queue.jids(tab, offset=request.offset, count=PAGE_SIZE)
        jobs_found = await request.client.jobs.summaries(*jids) if jids else []
        values |= {"jobs": jobs_found, "total": getattr(counts, tab)}
    return Page("queue.html", f"{name} · queue", values, live=tab != "breakdown")


@dataclass(frozen=True)
class QueueOption:
    """An option of a queue, and how full the limit is that it sets.

    Attributes:
        label: What the page calls it.
        option: Its name.
        value: Its value; None if it is not set.
        used: How much of the limit is used.
        most: The limit; 0 if there is none.
        until: When there is room again, in seconds since 1970; 0 if there is.
    """

    label: str
    option: str
    value: Value
    used: float = 0
    most: float = 0
    until: float = 0

    @property
    def description(self) -> str:
        """What the option means."""
        return describe_option(self.option)


async def _read_options(
    request: PageRequest, queue: QueueCounts, limits: QueueLimits
) -> list[QueueOption]:
    """Read the options of a queue."""
    options = await request.client.config.all()
    names = [f"{queue.name}-{ending}" for ending in ENDINGS]
    values = [options.get(name) for name in names]
    length = queue.waiting + queue.running + queue.scheduled
    longest = float(values[2]) if str(values[2]).isdecimal() else 0  # type: ignore[arg-type]
    used = (
        (limits.running, limits.limit, 0.0),
        (limits.starts, limits.rate[0], limits.next_start),
        (length, longest, 0.0),
        (0, 0, 0.0),
    )
    return [
        QueueOption(label, name, value, *fill)
        for label, name, value, fill in zip(ENDINGS.values(), names, values, used, strict=True)
    ]


class KeyUsage(msgspec.Struct, frozen=True, kw_only=True):
    """How full a limit by key is, in all queues: as the command `limit_usage` returns it.

    Attributes:
        key: The key, without hidden values.
        jid: A job that has it.
        held: Jobs that it holds back.
        running: Running jobs that count towards its concurrency limit.
        limit: This limit; 0: none.
        rate: Its rate limit, as a number and seconds; (0, 0): none.
        used: Starts that count towards it, or what they cost.
        until: When the rate has room for the next start, in seconds since 1970; 0: now.
        paused_until: When a pause of the key ends; 0 without one.
    """

    key: str
    jid: str
    held: int
    running: int
    limit: int = 0
    rate: tuple[float, float] = (0, 0)
    used: float = 0
    until: float = 0
    paused_until: float = 0

    @property
    def share(self) -> float:
        """How full it is, from 0 to 1."""
        shares = [self.running / self.limit if self.limit else 0.0, float(self.paused_until > 0)]
        return max(*shares, self.used / self.rate[0] if self.rate[0] else 0.0)


class LimitUsage(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of jobs of a queue.

    Attributes:
        keys: The fullest ones.
        total: Number of keys of the jobs that were read.
        read: Number of these jobs.
        jobs: Number of scheduled and running jobs.
    """

    keys: list[KeyUsage]
    total: int
    read: int
    jobs: int


async def _read_usage(request: PageRequest, queue: str) -> LimitUsage:
    """Read how full the limits by key are, the fullest first."""
    client = request.client
    reply = await DashboardCommands(client.internals.store).limit_usage(queue=queue)
    usage = msgspec.convert(reply, LimitUsage)
    keys = sorted(usage.keys, key=lambda key: (-key.share, -key.held))[:MAX_KEYS]
    jobs = await client.jobs.summaries(*(key.jid for key in keys)) if keys else []
    data = {job.jid: job.data for job in jobs}
    shown = [
        msgspec.structs.replace(key, key=show_key(request, key.key, data.get(key.jid)))
        for key in keys
    ]
    return msgspec.structs.replace(usage, keys=shown)


async def _search_jobs(request: PageRequest, queue: str, state: str) -> tuple[list[str], int]:
    """Search jobs of a queue that have ended, the latest complete ones first.

    Returns:
        Their jids, and the number of jobs that were searched.
    """
    until, cursor, jids = time.monotonic() + SEARCH_TIME, "", list[str]()
    while True:
        page = await request.client.jobs.search(
            f"queue:{Text(queue)} state:{state}",
            cursor=cursor,
            count=SAMPLE - len(jids),
        )
        jids, cursor = jids + page.jids, page.cursor
        if not cursor or len(jids) >= SAMPLE or time.monotonic() > until:
            return jids, page.searched


async def _read_shares(
    request: PageRequest, jids: list[str]
) -> tuple[int, dict[str, list[tuple[str, int]]]]:
    """Return the number of jobs, and the most frequent klasses, tags and arguments."""
    shares = await read_shares(request.client, jids, partial(_list_arguments, request))
    return shares.sampled, {
        "Classes": shares.klasses,
        "Tags": shares.tags,
        "Arguments": shares.fields,
    }


def _list_arguments(request: PageRequest, data: str | None) -> list[str]:
    """Return the short arguments of a job as `name=value`, without hidden ones."""
    if not request.sees_data:
        return []
    shown = request.dashboard.redaction.format(data or "", indent=0)
    return [each for each in list_fields(shown) if HIDDEN not in each]
