"""How one worker behaves. What all workers share is in client.config."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from aioqless import validation
from aioqless.handlers.retry_policy import NEVER, RetryPolicy
from aioqless.hints import suggest_options
from aioqless.validation import Duration
from aioqless.worker.subscriptions import Order, Subscription, parse_subscriptions

# Which version of the application runs, where a platform or a build says so.
VERSION_VARIABLES = (
    *("GIT_SHA", "GIT_COMMIT", "SENTRY_RELEASE", "HEROKU_BUILD_COMMIT", "HEROKU_SLUG_COMMIT"),
    *("RENDER_GIT_COMMIT", "RAILWAY_GIT_COMMIT_SHA", "KOYEB_GIT_SHA", "FLY_IMAGE_REF"),
    *("K_REVISION", "SOURCE_VERSION"),
)


@dataclass(frozen=True, kw_only=True)
class ReconnectDelays:
    """How long a worker waits before it tries again while Redis is unreachable.

    Args:
        first: Seconds before the first attempt; later delays grow.
        longest: Maximum delay in seconds.

    Raises:
        ValueError: A delay is out of range.
    """

    first: Duration = Duration(0.1, least=0.001)
    longest: Duration = Duration(5.0)

    def __post_init__(self) -> None:
        validation.check_number("reconnect.longest", self.longest, least=self.first)

    def after(self, away: float) -> float:
        """Return the seconds to wait when Redis has been unreachable for `away` seconds."""
        return min(self.first + away / 2, self.longest)


@suggest_options({"queue": 'Settings(queues=["mail"])'})
@dataclass(frozen=True, kw_only=True)
class Settings:
    """How one worker behaves. Times are in seconds, or timedeltas.

    Args:
        queues: Names, patterns or subscriptions in order of preference, or each with its limit;
            None: the queues that the handlers name, and `default` if one of them names none.
        order: Which queue is asked first: "ordered", "round-robin", "shuffled" or "weighted".
        concurrency: Maximum number of jobs at once.
        poll: Time between polls of empty queues; a put wakes an idle worker sooner.
        shutdown_timeout: Graceful-shutdown timeout: after it, running jobs are released. The
            platform should wait at least `kill_after` + 8 s longer:
            `terminationGracePeriodSeconds: 40` in Kubernetes.
        stuck_after: When the event loop is blocked for this long, locks are no longer renewed, so
            that other workers take the jobs.
        burst: Stop when nothing is ready and nothing runs.
        scheduler: Declare the handlers' recurring jobs, and put those whose cron expression is due.
        retry: Retry policy of handlers without one of their own.
        timeout: Maximum duration of a run of handlers without a timeout of their own; None: none.
        park_after: A job that waits for longer leaves its slot until it can continue.
        unknown_klass_delay: A job whose klass has no handler here is released for this long, for
            workers that have one.
        unknown_klass_timeout: It fails when workers have released it for this long; 0: at once.
        allow_eviction: Work on a Redis that may delete keys when its memory is full.
        threads: Maximum number of plain functions at once.
        processes: Maximum number of handlers with `executor="process"` at once.
        max_jobs_per_process: Replace a process after this many jobs; None: never.
        kill_after: Time until a process that ignores a stop is killed; added to `shutdown_timeout`.
        max_jobs: Stop after this many jobs have begun, when they have ended, to make room for a
            fresh worker; None: never.
        max_memory: Stop when the process uses more than this many bytes; None: never.
        reconnect: Delays while Redis is unreachable.
        version_label: Version of the application, of which the first worker is a deploy mark;
            default: what GIT_SHA and variables of common platforms say.

    Raises:
        ValueError: A value is out of range.
        TypeError: A value is of the wrong type.
    """

    queues: Sequence[str | Subscription] | Mapping[str, int | None] | None = None
    order: Order = "ordered"
    concurrency: int = 20
    poll: Duration = Duration(1.0, least=0.01)
    shutdown_timeout: Duration = Duration(25.0)
    stuck_after: Duration = Duration(600.0, least=1)
    burst: bool = False
    scheduler: bool = True
    retry: RetryPolicy = NEVER
    timeout: Duration[float | None] = Duration(None, least=0.001)
    park_after: Duration = Duration(5.0)
    unknown_klass_delay: Duration = Duration(5.0, least=0.1)
    unknown_klass_timeout: Duration = Duration(600.0)
    allow_eviction: bool = False
    threads: int = 20
    processes: int = os.cpu_count() or 1
    max_jobs_per_process: int | None = None
    kill_after: Duration = Duration(2.0)
    max_jobs: int | None = None
    max_memory: int | None = None
    reconnect: ReconnectDelays = field(default_factory=ReconnectDelays)
    version_label: str | None = None

    def __post_init__(self) -> None:
        parse_subscriptions(self.queues, self.order)
        for name in ("concurrency", "threads", "processes"):
            validation.check_integer(name, getattr(self, name))
        for name in ("max_jobs_per_process", "max_jobs", "max_memory"):
            if (most := getattr(self, name)) is not None:
                validation.check_integer(name, most)
        if not isinstance(self.reconnect, ReconnectDelays):
            raise TypeError(f"reconnect must be ReconnectDelays, not {self.reconnect!r}")
        for name in ("scheduler", "allow_eviction"):
            validation.check_bool(name, getattr(self, name))

    @property
    def subscriptions(self) -> tuple[Subscription, ...]:
        """The subscriptions that `queues` asks for; none where it is None."""
        return parse_subscriptions(self.queues, self.order)


def find_version(environ: Mapping[str, str] = os.environ) -> str:
    """Return the version of the application as the environment says; empty if it doesn't."""
    return next(filter(None, map(environ.get, VERSION_VARIABLES)), "")
