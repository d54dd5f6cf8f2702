"""How one worker behaves. What all workers share is in client.config."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aioqless import validation
from aioqless.contrib.foreign_queues import Source
from aioqless.handlers.retry_policy import NEVER, RetryPolicy
from aioqless.worker.subscriptions import Order, Subscription, subscriptions

OPTIONAL = ("max_jobs_per_process", "max_jobs", "max_memory", "release_unknown")  # may be None


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Checked when made; raises ValueError and TypeError. Times are in seconds."""

    queues: Sequence[str | Subscription] | Mapping[str, int | None] = (
        "default",
    )  # in order of preference; or each with its limit
    order: Order = "ordered"  # or round-robin, shuffled, weighted: which queue is asked first
    concurrency: int = 20  # runs at once; also the most that a pop asks for
    poll: float = 1.0  # between looks at empty queues; a put wakes an idle worker sooner
    reconnect: float = (
        0.1  # when Redis is away, the first pause before it is tried again; later ones grow
    )
    reconnect_max: float = 5.0  # up to this one
    # to finish what runs when told to stop, below the 30 s of Kubernetes; the rest is handed back
    grace: float = 25.0
    threads: int = 20  # plain functions at once
    processes: int = os.cpu_count() or 1  # handlers with executor="process" at once
    max_jobs_per_process: int | None = None  # then another process takes its place; None: never
    kill_after: float = (
        2.0  # a process that was told to stop and hasn't is killed; comes on top of `grace`
    )
    # declare the handlers' recurring jobs, and make the instances of those with a cron expression
    scheduler: bool = True
    stuck_after: float = (
        600.0  # the loop being blocked for so long, locks are no longer kept: others get the jobs
    )
    intake: Sequence[Source] = ()  # other systems whose clients' jobs are taken over
    release_unknown: float | None = (
        # for how long a job goes back whose klass is unknown here, for others to take; None: it
        # fails
        None
    )
    retry: RetryPolicy = NEVER  # for handlers without one of their own
    allow_eviction: bool = False  # work on a Redis that may delete jobs when its memory is full
    burst: bool = False  # stop when nothing is ready and nothing runs here
    max_jobs: int | None = None  # stop when so many have begun, and what runs has ended
    max_memory: int | None = None  # bytes; stop when the process takes more

    def __post_init__(self) -> None:
        subscriptions(self.queues, self.order)
        for name in (
            "concurrency",
            "threads",
            "processes",
            "max_jobs_per_process",
            "max_jobs",
            "max_memory",
        ):
            value = getattr(self, name)
            if (value is not None or name not in OPTIONAL) and (
                isinstance(value, bool) or not isinstance(value, int) or value < 1
            ):
                raise ValueError(f"{name} must be a whole number of 1 or more, not {value!r}")
        for name in ("scheduler", "allow_eviction"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be True or False, not {getattr(self, name)!r}")
        if isinstance(self.intake, Source) or not all(
            isinstance(each, Source) for each in self.intake
        ):
            raise TypeError(f"intake must be a list of Source, not {self.intake!r}")
        for name, least in (
            ("poll", 0.01),
            ("reconnect", 0.001),
            ("reconnect_max", self.reconnect),
            ("grace", 0),
            ("stuck_after", 1),
            ("kill_after", 0),
            ("release_unknown", 0.1),
        ):
            if getattr(self, name) is not None or name not in OPTIONAL:
                validation.checked_number(name, getattr(self, name), least=least)

    @property
    def subscriptions(self) -> tuple[Subscription, ...]:
        """What `queues` asks for."""
        return subscriptions(self.queues, self.order)
