"""What has run by klass: all klasses, and one of them, before and after the last deploy."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from aioqless.contrib.dashboard.page_request import PAGE_SIZE, Page, PageRequest
from aioqless.contrib.metrics import KlassMetrics, Mark, RunTotals

HOURS = ("8", "1", "24", "168")
MAX_COMPLETED = 500  # jobs among which the slowest are sought
MAX_SLOWEST = 10
SORTS = ("time", "runs", "failures", "p95", "changed")


@dataclass(frozen=True)
class Runs:
    """What has run in the last hours.

    `begin` and `end`, which is now, are in seconds since 1970, the `step` of periods is in seconds.
    The newest mark comes first.
    """

    hours: int
    begin: float
    end: float
    step: int
    klasses: Sequence[KlassMetrics]
    marks: Sequence[Mark]

    @cached_property
    def periods(self) -> list[RunTotals]:
        """The periods, each with what ended in it, oldest first."""
        found: dict[float, list[RunTotals]] = {}
        for each in self.klasses:
            for period in each.periods:
                found.setdefault(period.start, []).append(period)
        return [
            RunTotals.sum(found[start], start=start, end=start + self.step)
            for start in sorted(found)
        ]

    @property
    def total(self) -> RunTotals:
        """What has run in all."""
        return RunTotals.sum((each.total for each in self.klasses), start=self.begin, end=self.end)

    @property
    def deploy(self) -> Mark | None:
        """The last deploy in this time."""
        return next((mark for mark in self.marks if mark.deploy and mark.at > self.begin), None)

    def around_deploy(self) -> tuple[RunTotals, RunTotals] | None:
        """Return what ran before and after the last deploy, for as long; None without one."""
        if (mark := self.deploy) is None:
            return None
        at = mark.at // self.step * self.step
        before = max(self.begin, at - (self.end - at))
        return tuple(  # type: ignore[return-value]
            RunTotals.sum((each.between(start, end) for each in self.klasses), start=start, end=end)
            for start, end in ((before, at), (at, self.end))
        )

    def change(self) -> float:
        """Return how much worse it is since the last deploy; 0 without one.

        That is the growth of its p95, or of its failure rate if that is more: 1 if the p95 has
        doubled, or if all runs fail of which none did.
        """
        if (around := self.around_deploy()) is None:
            return 0.0
        before, after = around
        slower = (after.run.p95 or 0.0) / before.run.p95 - 1 if before.run.p95 else 0.0
        return max(slower, after.failure_rate - before.failure_rate)

    def fails_more(self) -> bool:
        """Return whether more of its runs fail since the last deploy; without one, if any does."""
        if (around := self.around_deploy()) is None:
            return self.total.failures > 0
        return around[1].failure_rate > around[0].failure_rate

    def of(self, name: str) -> dict[float, float]:
        """Return a value of each period by its start.

        Args:
            name: runs or failures, per minute; or a quantile such as `run.p95`.
        """
        what, _, quantile = name.partition(".")
        if quantile:
            return {
                period.start: getattr(getattr(period, what), quantile) or 0.0
                for period in self.periods
            }
        values: dict[float, float] = {}
        for each in self.klasses:
            for period in each.periods:
                count = 60 * getattr(period, what) / self.step
                values[period.start] = values.get(period.start, 0.0) + count
        return values


async def read_runs(request: PageRequest, klass: str | None = None) -> Runs:
    """Read what has run in the hours that the page is asked for."""
    hours = int(request.one_of("hours", HOURS))
    step = 60 if hours <= 1 else 600 if hours <= 24 else 3600

    async def read() -> Runs:
        metrics, now = request.client.metrics, time.time()
        since = hours * 3600
        found = await metrics.klasses(since, klass=klass, step=step)
        return Runs(hours, now - since, now, step, found, await metrics.marks(since))

    return await request.dashboard.cached((hours, klass), read)


async def list_klasses(request: PageRequest) -> Page:
    """List the klasses that have run."""
    runs, search = await read_runs(request), request.text("q").lower()
    by_klass: dict[str, list[KlassMetrics]] = {}
    for each in runs.klasses:
        if search in each.klass.lower():
            by_klass.setdefault(each.klass, []).append(each)
    rows = [replace(runs, klasses=klasses) for klasses in by_klass.values()]
    sort = request.one_of("sort", SORTS)
    keys: dict[str, Callable[[Runs], float]] = {
        "time": lambda row: row.total.run_seconds,
        "runs": lambda row: row.total.runs,
        "failures": lambda row: row.total.failures,
        "p95": lambda row: row.total.run.p95 or 0,
        "changed": lambda row: row.change(),
    }
    rows.sort(key=lambda row: -keys[sort](row))
    values = {
        "runs": runs,
        "rows": rows[request.offset : request.offset + PAGE_SIZE],
        "total": len(rows),
        "search": request.text("q"),
        "sort": sort,
    }
    return Page("klasses.html", "Classes", values)


async def show_klass(request: PageRequest) -> Page:
    """Show what has run of a klass."""
    name = request.text("name")
    if not name:
        raise KeyError(name)
    jobs = request.client.jobs
    jids = await jobs.complete_jids(count=MAX_COMPLETED)
    completed = [job for job in await jobs.summaries(*jids) if job.klass == name] if jids else []
    completed.sort(key=lambda job: -(job.ran or 0))
    values = {
        "name": name,
        "runs": await read_runs(request, name),
        "slowest": completed[:MAX_SLOWEST],
        "read": len(jids),
    }
    return Page("klass.html", f"{name} · class", values, live=False)
