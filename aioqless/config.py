"""Configuration shared by all clients and workers of a namespace, in Redis."""

from __future__ import annotations

from typing import Any

from aioqless import names
from aioqless.scripts import Scripts

ABOUT = {  # what each option is for, in a few words
    "archive": "on: what ends is appended to a stream, from which it is taken into files",
    "archive-data": "bytes up to which jobs' data are archived, too",
    "archive-length": "entries that the archive's stream keeps, with count",
    "archive-when-full": "hold: what nobody has read yet stays; count: it is cut, and counted",
    "application": "a name for this namespace",
    "heartbeat": "seconds for which a pop locks a job",
    "grace-period": "seconds of courtesy after a lock has expired",
    "jobs-history": "seconds that completed jobs are kept",
    "jobs-history-count": "how many completed jobs are kept at most",
    "max-worker-age": "seconds of silence after which a worker is forgotten",
    "max-job-history": "events kept of a job",
    "max-lost": "maximum number of locks that a job may lose, whatever retries it has; 0 (default): no limit",
    "stats-history": "days that statistics are kept",
    "histogram-history": "days that histograms are kept",
}


class Config:
    """qless' options: heartbeat, `<queue>-heartbeat`, `<queue>-max-concurrency`, `<queue>-max-length`, `<queue>-rate-limit` (`100/60`: 100
    start a minute), grace-period, jobs-history, jobs-history-count, max-lost, max-worker-age, max-job-history, stats-history,
    histogram-history, and any of your own.

    Values are as stored: a text where somebody set it, the default (a number) elsewhere.
    """

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def get(self, option: str) -> Any:
        """The value; None for an option that nobody set and that has no default."""
        return await self._scripts("config", "get", option=option)

    async def all(self) -> dict[str, Any]:
        """Every option with its value."""
        options: dict[str, Any] = await self._scripts("config", "get")
        return options

    async def set(self, option: str, value: str | float) -> None:
        """Set an option for all. Raises InvalidArgument for a text where the commands need a number."""
        await self._scripts("config", "set", option=names.checked("option", option), value=value)

    async def unset(self, option: str) -> None:
        """Go back to the default."""
        await self._scripts("config", "unset", option=option)
