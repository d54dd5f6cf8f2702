"""Lists of jobs from all queues: by a filter, tracked ones; tags."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime

from aioqless.client import Client
from aioqless.client.job.summaries import SearchPage
from aioqless.contrib.dashboard.dashboard import Dashboard
from aioqless.contrib.dashboard.page_request import PAGE_SIZE, Page, PageRequest
from aioqless.contrib.dashboard.redaction import Redaction
from aioqless.contrib.http import Role
from aioqless.contrib.job_filter import (
    KEYS,
    MAX_ADDED,
    MAX_CONDITIONS,
    STATES,
    Condition,
    JobFilter,
    Text,
)
from aioqless.errors import AioqlessError, DecryptionError

SEARCH_TIME = 0.1  # seconds per request; the user continues the search from there
FOLLOWS_FOR = 10  # seconds for which a search that has found nothing continues by itself
MAX_OF_DAY = 200  # jobs of a day of the lake that are listed
MAX_CHECKED = 65_536  # bytes of their data, of which a filter is about hidden values
PORTION = 1000  # jobs found by a command where all are changed, not listed
PORTION_READ = 100  # jobs whose data is read at once
MAX_LENGTH, MAX_ADDED_LENGTH = 4000, 100  # of a filter, and of what an action adds to it
MAX_CURSOR_LENGTH = 8000
MAX_WORDS, MAX_NAMES = 300, 50  # that complete a filter
MAX_NAMES_FOUND = 20


@dataclass(frozen=True)
class BulkAct:
    """What users can do with all jobs that a filter finds.

    Attributes:
        condition: Which jobs it can be done with, as words of a filter.
        field: The field of its form.
    """

    name: str
    label: str
    condition: str
    explanation: str
    field: str = ""
    role: Role = Role.OPERATE


ACTS = {
    act.name: act
    for act in (
        BulkAct("retry", "Retry", "state:failed", "They run again at once, in their queues."),
        BulkAct("move", "Move", "state:waiting,scheduled", "They go to another queue.", "queue"),
        BulkAct("tag", "Tag", "", "They get the tags, separated by commas.", "tags"),
        BulkAct(
            "priority",
            "Set priority of",
            "-state:complete,failed",
            "Jobs with a lower number run sooner.",
            "priority",
        ),
        BulkAct(
            "cancel",
            "Delete",
            "-state:complete",
            "Running ones are deleted too, dependencies of other jobs aren't. "
            "This cannot be undone.",
            role=Role.ADMIN,
        ),
    )
}


def parse_filter(
    text: str, dashboard: Dashboard, *, sees_data: bool, is_narrowed: bool = False
) -> JobFilter:
    """Parse a filter of a user, perhaps with what an action has added to it.

    Raises:
        ValueError: It is malformed, or would tell the user what is hidden.
    """
    if len(text) > (most := MAX_LENGTH + MAX_ADDED_LENGTH * is_narrowed):
        raise ValueError(f"a filter has at most {most:,} characters (got {len(text):,})")
    wanted = JobFilter.parse(text, MAX_CONDITIONS + MAX_ADDED * is_narrowed)
    for path in wanted.paths:
        if not sees_data:
            raise ValueError("your role may not see job data, so it can't filter by it")
        if any(map(dashboard.redaction.is_hidden, path.split("."))):
            raise ValueError(f"{path} is hidden in the dashboard, so it can't be filtered by")
    return wanted


async def list_jobs(request: PageRequest) -> Page:
    """List the jobs that match a filter, and change all of them."""
    text = request.query.get("filter", "").strip()
    act = ACTS.get(request.text("act"))
    values: dict[str, object] = {
        "text": text,
        "problem": "",
        "is_busy": False,
        "follows": False,
        "day": None,
        "has_lake": request.dashboard.lake is not None,
        "act": act,
        "states": ("", *(f"state:{each}" for each in STATES)),
        "words": [],
    }
    try:
        wanted = parse_filter(
            text, request.dashboard, sees_data=request.sees_data, is_narrowed=act is not None
        )
        if request.dashboard.lake and (day := request.text("day")):
            values |= await asyncio.to_thread(_search_lake, request, wanted, day)
            return Page("jobs.html", "Jobs", values, live=False)
        if any(not each.ended for each in request.dashboard.bulk_actions.recent(text)):
            values["is_busy"] = True
            return Page("jobs.html", "Jobs", values)
        search, jids, is_short = await _search(request, wanted, to_change=act is not None)
    except (ValueError, AioqlessError, ImportError) as error:
        values["problem"] = f"{error}."
        return Page("jobs.html", "Jobs", values, live=False)
    await request.read_overview()
    # 1: until the user stops it; else a time
    on = request.number("on", 0, 0, 10**11)
    if "on" not in request.query and "cursor" not in request.query and act is None:
        on = math.ceil(time.time()) + FOLLOWS_FOR
    now = datetime.fromtimestamp(math.ceil(time.time() * 1000) / 1000, UTC)
    until = f"until:{now.isoformat(timespec='milliseconds').removesuffix('+00:00')}Z"
    values |= {
        "search": search,
        # without JavaScript, too: a search goes through portions in which it finds nothing
        "follows": bool(search.cursor and (act or not jids)) and (on == 1 or time.time() < on),
        "on": on,
        "jobs": await request.client.jobs.summaries(*jids) if jids else [],
        "acts": [
            (each.name, each.label.removesuffix(" of"), _narrow(wanted, each.condition, until))
            for each in ACTS.values()
            if request.may(each.role)
        ],
        "words": list(_list_words(text, request, await request.client.jobs.tags(count=MAX_NAMES))),
        **await _find_names(request, text, wanted),
    }
    return Page("jobs.html", "Jobs", values, live=is_short and not act)


async def list_tracked(request: PageRequest) -> Page:
    """List the tracked jobs, those tracked last first."""
    jobs, gone = await request.client.jobs.tracked()
    jids = [job.jid for job in reversed(jobs)][request.offset : request.offset + PAGE_SIZE]
    shown = await request.client.jobs.summaries(*jids) if jids else []
    values = {"jobs": shown, "gone": gone[:PAGE_SIZE], "total": len(jobs)}
    return Page("tracked.html", "Tracked", values)


async def list_tags(request: PageRequest) -> Page:
    """List the tags of two jobs or more, most frequent first."""
    names = await request.client.jobs.tags(offset=request.offset, count=2 * PAGE_SIZE)
    values = {"tags": names, "has_more": len(names) == 2 * PAGE_SIZE}
    return Page("tags.html", "Tags", values, live=False)


async def drop_hidden(
    client: Client, redaction: Redaction, wanted: JobFilter, jids: list[str]
) -> list[str]:
    """Return those of found jobs whose values that the filter is about are shown.

    To find the others would confirm a guess of what is hidden.
    """
    if not (wanted.paths and redaction.active):
        return jids
    found: list[str] = []
    for start in range(0, len(jids), PORTION_READ):
        for job in await client.jobs.multiget(*jids[start : start + PORTION_READ]):
            with contextlib.suppress(DecryptionError):
                if not redaction.hides(job.text, wanted.paths):
                    found.append(job.jid)
    return found


async def _search(
    request: PageRequest, wanted: JobFilter, *, to_change: bool
) -> tuple[SearchPage, list[str], bool]:
    """Search for a page of jobs or, to change them all, for as many as the time allows.

    Returns:
        The last portion, the jobs to show, and whether it was the only portion.
    """
    cursor, jids = request.query.get("cursor", "")[:MAX_CURSOR_LENGTH], list[str]()
    until = time.monotonic() + SEARCH_TIME
    is_short = True
    while True:
        count = PORTION if to_change else PAGE_SIZE - len(jids)
        page = await request.client.jobs.search(str(wanted), cursor=cursor, count=count)
        shown = await drop_hidden(request.client, request.dashboard.redaction, wanted, page.jids)
        jids, cursor = (jids + shown)[:PAGE_SIZE], page.cursor
        is_full = len(jids) == PAGE_SIZE and not to_change
        if not cursor or is_full or time.monotonic() > until:
            return page, jids, is_short
        is_short = False


def _search_lake(request: PageRequest, wanted: JobFilter, text: str) -> dict[str, object]:
    """Search the lake's events of a day, or of the latest day before it."""
    from aioqless.contrib.lake.lake import Lake
    from aioqless.contrib.lake.read.job_search import list_days, search_day

    lake, namespace = Lake(str(request.dashboard.lake)), request.client.namespace
    first, last = wanted.read_dates(time.time())
    latest = min(last, last if text == "latest" else date.fromisoformat(text))
    days = [each for each in list_days(lake, namespace) if first <= each <= latest]
    redaction = request.dashboard.redaction
    is_checked = bool(wanted.paths) and redaction.active
    most = {"max_data": MAX_CHECKED} if is_checked else {}
    jobs = search_day(lake, namespace, wanted, days[0], MAX_OF_DAY, **most) if days else []
    if is_checked:
        jobs = [each for each in jobs if each.data and not redaction.hides(each.data, wanted.paths)]
    return {
        "day": days[0] if days else latest,
        "earlier": days[1] if len(days) > 1 else None,
        "days_left": max(0, len(days) - 1),
        "jobs": jobs,
        "is_full": len(jobs) == MAX_OF_DAY,
        "follows": len(days) > 1 and not jobs and request.text("on"),
    }


def _narrow(wanted: JobFilter, condition: str, until: str) -> str:
    """Return a filter for those of the jobs that an action can change, as they are now."""
    has_end = any(each.key == "until" for each in wanted.conditions)
    return str(wanted & JobFilter.parse(condition if has_end else f"{condition} {until}"))


def _list_words(text: str, request: PageRequest, tags: list[str]) -> Iterator[str]:
    """Yield the filter with one word more, as it may be completed."""
    overview = request.dashboard.overviews.latest
    names = {
        "queue": [each.name for each in overview.queues],
        "tag": tags,
        "group": list(overview.failed),
        "worker": [each.name for each in overview.workers],
    }
    words = [f"state:{state}" for state in STATES]
    words += [f"{key}:" for key in KEYS if key not in ("state", "text", *names)]
    for key, values in names.items():
        words += [str(Condition(key, (Text(name),))) for name in values[:MAX_NAMES]]
    for word in words[:MAX_WORDS]:
        yield f"{text} {word}".lstrip()


async def _find_names(request: PageRequest, text: str, wanted: JobFilter) -> dict[str, object]:
    """Find jobs, tags, klasses, queues and groups by their name; the latter also by a part."""
    if not text:
        return dict.fromkeys(("exact", "template", "tagged", "klasses", "queues", "groups"))
    klasses = {*await request.client.metrics.klass_names(), *request.dashboard.handlers}
    overview = request.dashboard.overviews.latest
    queues = [queue.name for queue in overview.queues if text.lower() in queue.name.lower()]
    groups = [name for name in overview.failed if text.lower() in name.lower()]
    return {
        "exact": await request.client.jobs.summaries(text),
        "template": await request.client.recurring.get(text),
        "tagged": (await request.client.jobs.tagged_jids(text, count=1))[0],
        "klasses": sorted(klasses & {text, *wanted.values("klass")})[:MAX_NAMES_FOUND],
        "queues": queues[:MAX_NAMES_FOUND],
        "groups": groups[:MAX_NAMES_FOUND],
    }
