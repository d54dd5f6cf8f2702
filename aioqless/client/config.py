"""Configuration shared by all clients and workers of a namespace, in Redis."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from aioqless import validation
from aioqless.store import Store

ABOUT = {  # what each option is for, in a few words
    "archive": "on: what ends is appended to a stream, from which it is taken into files",
    "archive-data": "bytes up to which jobs' data are archived, too",
    "archive-length": "entries that the archive's stream keeps, with count",
    "archive-when-full": "hold: what nobody has read yet stays; count: it is cut, and counted",
    "application": "a name for this namespace",
    "heartbeat": "seconds for which a pop locks a job",
    "failed-history": "seconds that failed jobs are kept",
    "grace-period": "seconds of courtesy after a lock has expired",
    "jobs-history": "seconds that completed jobs are kept",
    "jobs-history-count": "how many completed jobs are kept at most",
    "max-worker-age": "seconds of silence after which a worker is forgotten",
    "max-job-history": "events kept of a job",
    "max-lost": "maximum number of locks that a job may lose, whatever retries it has; 0 (default): no limit",
    "stats-history": "maximum number of days that statistics are kept, today included",
    "histogram-history": "maximum number of days that histograms are kept, today included",
}

_OF_QUEUES = (
    "heartbeat",
    "max-concurrency",
    "max-length",
    "rate-limit",
    "jobs-history",
    "failed-history",
    "max-pop-retry",
)
_OF_PEERS = ("max-pop-retry",)  # read by some versions of other qless clients alone


def is_known(option: str) -> bool:
    """Whether some command reads the option: `heartbeat`, `<queue>-heartbeat`, `heartbeat-<queue>`
    and the like."""
    of_queue = any(
        option.endswith(f"-{ending}") and len(option) > len(ending) + 1 for ending in _OF_QUEUES
    )
    return (
        option in ABOUT
        or option in _OF_PEERS
        or of_queue
        or (option.startswith("heartbeat-") and option != "heartbeat-")
    )


def unknown(option: str) -> str:
    """Say that no command reads the option, and which one it is most like, if it is like any."""
    words = option.split("-")
    names = list(ABOUT)
    for count in range(1, len(words)):
        names += [f"{'-'.join(words[:count])}-{ending}" for ending in _OF_QUEUES]
        names.append(f"heartbeat-{'-'.join(words[count:])}")
    alike = get_close_matches(option, names, 1, cutoff=0.75)
    return f"no command reads the option {option!r}" + (
        f"; did you mean {alike[0]!r}?" if alike else "."
    )


class Config:
    """qless' options: heartbeat, `<queue>-heartbeat`, `<queue>-max-concurrency`,
    `<queue>-max-length`, `<queue>-rate-limit` (`100/60`: 100 start a minute), grace-period,
    jobs-history, jobs-history-count, max-lost, max-worker-age, max-job-history, stats-history,
    histogram-history; and, with `force`, any of your own.

    Values are as stored: a text where somebody set it, the default (a number) elsewhere.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def get(self, option: str) -> Any:
        """The value; None for an option that nobody set and that has no default."""
        return await self._store.config_get(option=option)

    async def all(self) -> dict[str, Any]:
        """Every option with its value."""
        options: dict[str, Any] = await self._store.config_get()
        return options

    async def set(self, option: str, value: str | float, *, force: bool = False) -> None:
        """Set an option for all clients and workers.

        Args:
            option: Its name.
            value: Its value.
            force: Also store an option that no command reads, such as one of your own.

        Raises:
            ValueError: No command reads the option; the message names the one that is most like it.
            InvalidArgument: The value is not what the option takes, such as a text in place of a number.
        """
        if not is_known(validation.check_name("option", option)) and not force:
            raise ValueError(f"{unknown(option)} Pass force=True to store it nevertheless")
        await self._store.config_set(option=option, value=value)

    async def unset(self, option: str) -> None:
        """Go back to the default."""
        await self._store.config_unset(option=option)
