"""Actions on the jobs of a failure group, or of an error, in steps with progress."""

from __future__ import annotations

import itertools
import time
from collections.abc import Awaitable, Callable

from aioqless.client.failures import find_groups, list_largest
from aioqless.contrib.dashboard.actions.action import ActionRequest

PORTION = 500
MAX_READ = 100_000  # jobs that are read to find those of an error or a time


async def retry_all(request: ActionRequest) -> str:
    """Retry the jobs, each in its queue; jobs that fail meanwhile are left."""
    jobs = request.client.jobs
    if not _is_part(request):
        group, total = await _whole_group(request)

        async def step(_skipped: int, count: int) -> tuple[int, int]:
            return await jobs.retry_group(group, count), 0

        request.dashboard.bulk_actions.start(
            request.user, request.form, "retry-all", "retried", group, total, step=step
        )
        return f"Retrying {total:,} jobs of {group}."
    return await _act_on_part(request, "retry-all", "retried", jobs.retry_many)


async def cancel_all(request: ActionRequest) -> str:
    """Cancel the jobs, except dependencies of other jobs."""
    jobs = request.client.jobs

    async def cancel(jids: list[str]) -> int:
        return (await jobs.cancel_many(jids)).canceled

    if not _is_part(request):
        group, total = await _whole_group(request)

        async def step(skipped: int, count: int) -> tuple[int, int]:
            jids = await jobs.failed_jids(group, offset=skipped, count=count)
            done = await cancel(jids)
            return done, len(jids) - done

        request.dashboard.bulk_actions.start(
            request.user, request.form, "cancel-all", "deleted", group, total, step=step
        )
        return f"Deleting {total:,} jobs of {group}."
    return await _act_on_part(request, "cancel-all", "deleted", cancel)


def _is_part(request: ActionRequest) -> bool:
    return bool(request.form.get("error") or request.form.get("since"))


async def _whole_group(request: ActionRequest) -> tuple[str, int]:
    (summary,) = await request.client.jobs.failure_groups(request.text("group"))
    if not summary.total:
        raise ValueError(f"group {summary.group!r} has no jobs")
    return summary.group, summary.total


async def _act_on_part(
    request: ActionRequest, action: str, verb: str, change: Callable[[list[str]], Awaitable[int]]
) -> str:
    """Change the jobs of an error, or those of a group that failed since a time."""
    jids, name = await _select(request)
    if not jids:
        raise ValueError(f"no job of {name} failed in this time")
    left = iter(jids)

    async def step(_skipped: int, count: int) -> tuple[int, int]:
        portion = list(itertools.islice(left, count))
        done = await change(portion)
        return done, len(portion) - done

    request.dashboard.bulk_actions.start(
        request.user, request.form, action, verb, name, len(jids), step=step
    )
    return f"{len(jids):,} jobs of {name} are being {verb}."


async def _select(request: ActionRequest) -> tuple[list[str], str]:
    """Return the jids that a form selects, and what they have in common."""
    jobs, error, klass = request.client.jobs, request.form.get("error"), request.form.get("klass")
    since = time.time() - seconds if (seconds := request.number("since", 0)) else 0
    if error:  # the groups that the page has counted
        groups = list_largest(find_groups(await jobs.failed_counts(), error))
    else:
        groups = [request.text("group")]
    found: list[str] = []
    read = 0
    for group in groups:
        offset, more = 0, True
        while more and read < MAX_READ:
            jids = await jobs.failed_jids(group, offset=offset, count=PORTION)
            page = await jobs.summaries(*jids) if jids else []
            found += [
                job.jid
                for job in page
                if job.failed >= since
                and (not error or job.error == error)
                and (not klass or job.klass == klass)
            ]
            offset, read = offset + len(jids), read + len(jids)
            more = len(jids) == PORTION and not any(job.failed < since for job in page)
    return found, f"{error} in {klass}" if error and klass else error or groups[0]
