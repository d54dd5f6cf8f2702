"""Config: configuration in Redis that all clients and workers of a namespace share."""

from __future__ import annotations

from datetime import timedelta
from typing import TypeAlias

from aioqless import validation
from aioqless.hints import did_you_mean
from aioqless.store import Store
from aioqless.validation import Seconds

Value: TypeAlias = str | int | float | None

OPTION_DESCRIPTIONS = {
    "archive": "on: jobs that end are appended to the archive stream",
    "archive-data": "maximum size of a job's data in the archive, in bytes",
    "archive-length": "maximum number of entries of the archive stream, with count",
    "archive-when-full": "hold: keep unread entries; count: delete them, and count them",
    "application": "a name for this namespace",
    "heartbeat": "seconds for which a pop locks a job",
    "failed-history": "seconds for which failed jobs are kept",
    "grace-period": "seconds after the expiry of a lock in which its holder may renew it",
    "jobs-history": "seconds for which completed jobs are kept",
    "jobs-history-count": "maximum number of completed jobs that are kept",
    "max-worker-age": "seconds without a sign after which a worker is forgotten",
    "max-job-history": "maximum number of events kept of a job",
    "max-lost": "maximum number of locks a job may lose, whatever its retries; 0: no limit",
    "max-steps": "maximum number of steps that a job may store",
    "max-steps-size": "maximum size of all steps of a job, in bytes",
    "worker-timeout": "seconds without a sign of life after which a worker is gone; at least 15",
    "stats-history": "maximum number of days for which statistics are kept, with today",
    "histogram-history": "maximum number of days for which histograms are kept, with today",
}
# By the ending of `<queue>-<ending>`; those of retention take a klass, too.
_OF_QUEUES = {
    "heartbeat": "seconds for which a pop from {0} locks a job",
    "max-concurrency": "maximum number of running jobs of {0}; 0: no limit",
    "max-length": "maximum number of jobs in {0}; a put beyond is refused",
    "rate-limit": "starts of jobs of {0} in seconds: 100/60 is 100 per minute",
    "jobs-history": "seconds for which completed jobs of {0} are kept",
    "failed-history": "seconds for which failed jobs of {0} are kept",
    "max-pop-retry": "read by other qless clients only",
}
_OF_PEERS = ("max-pop-retry",)  # read only by some versions of other qless clients


def is_known(option: str) -> bool:
    """Return whether a command reads an option."""
    return option in _OF_PEERS or bool(describe_option(option))


def describe_option(option: str) -> str:
    """Return what an option means; an empty text for one that no command reads.

    Options of queues are known by their ending, as in `<queue>-heartbeat`, or `heartbeat-<queue>`.
    """
    if option in OPTION_DESCRIPTIONS:
        return OPTION_DESCRIPTIONS[option]
    for ending, meaning in _OF_QUEUES.items():
        if option.endswith(f"-{ending}") and (queue := option.removesuffix(f"-{ending}")):
            return meaning.format(queue)
    queue = option.removeprefix("heartbeat-")
    return "" if queue in ("", option) else _OF_QUEUES["heartbeat"].format(queue)


def describe_unknown(option: str) -> str:
    """Say that no command reads an option, and which one is most similar, if one is."""
    words = option.split("-")
    names = list(OPTION_DESCRIPTIONS)
    for count in range(1, len(words)):
        names += [f"{'-'.join(words[:count])}-{ending}" for ending in _OF_QUEUES]
        names.append(f"heartbeat-{'-'.join(words[count:])}")
    return f"no command reads the option {option!r}{did_you_mean(option, names) or '.'}"


def _check_range(option: str, value: str | float) -> None:
    """Refuse a number that scripts take, as those of other clients do, but that no one means."""
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return
    if "heartbeat" in option and number <= 0:
        raise ValueError(f"{option} must be more than 0 seconds (got {value})")
    if number < 0:
        raise ValueError(f"{option} must be 0 or more (got {value})")


class Config:
    """The options of qless.

    They are heartbeat, `<queue>-heartbeat`, `<queue>-max-concurrency`, `<queue>-max-length`,
    `<queue>-rate-limit` (`(100, 60)`: 100 starts a minute), grace-period, jobs-history,
    jobs-history-count, max-lost, max-worker-age, max-job-history, stats-history, histogram-history,
    and with `force` any of your own.

    An option that was set is a string; a default is a number.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def get(self, option: str) -> Value:
        """Return the value of an option; None if it is not set and has no default.

        Args:
            option: Name of the option.
        """
        value: Value = await self._store.config_get(option=option)
        return value

    async def all(self) -> dict[str, Value]:
        """Return all options by name."""
        options: dict[str, Value] = await self._store.config_get()
        return options

    async def set(
        self, option: str, value: str | Seconds | tuple[int, Seconds], *, force: bool = False
    ) -> None:
        """Set an option for all clients and workers.

        Args:
            option: Name of the option.
            value: Its value; a duration is in seconds, or a timedelta; a rate is a tuple, as in
                `Limit(rate=(100, 60))`.
            force: Also store an option that no command reads, such as one of your own.

        Raises:
            ValueError: No command reads the option; the message names the most similar one.
            ValueError: The value is negative, or the heartbeat is 0.
            InvalidArgument: The option takes no such value.
        """
        if not is_known(validation.check_name("option", option)) and not force:
            raise ValueError(f"{describe_unknown(option)} Pass force=True to store it nevertheless")
        if isinstance(value, tuple):
            starts, period = value
            value = f"{starts}/{validation.check_seconds(option, period):g}"
        elif isinstance(value, timedelta):
            value = validation.check_seconds(option, value)
        if is_known(option) and option != "application":
            _check_range(option, value)
        await self._store.config_set(option=option, value=value)

    async def unset(self, option: str) -> None:
        """Reset an option to its default.

        Args:
            option: Name of the option.
        """
        await self._store.config_unset(option=option)
