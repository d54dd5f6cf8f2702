"""The worker: its parts, each with the state that it alone changes.

worker.py          Worker         builds its parts, runs them, and stops them in order
settings.py        Settings       how one worker behaves
context.py         WorkerContext  what its parts have in common; how near its end is; outages
shared.py          Shared         what several workers in one process may have in common
running_jobs.py    Run, RunningJobs   one attempt of one job; the table of all of them

a job's way:
poller.py          Poller         decides when to pop, and how many jobs
subscriptions.py   Subscriptions  which queues, with which limits, in which order
runner.py          Runner         starts each job, calls its handler, sees it through
executors/         ThreadPool, ProcessPool   where code runs that does not run on the loop
outcome.py                        `outcome_of` decides what to store, without any I/O
failure_text.py                   words errors
outcome_writer.py  OutcomeWriter  stores outcomes, however long Redis is unavailable

while it runs:
lock_renewer.py    LockRenewer    renews locks, from a thread with its own loop and connection
watchdog.py        LoopWatchdog   logs what blocks the event loop; stack dumps
memory_checks.py   ArchiveMonitor eviction policy of Redis; an archive without readers

messages:
listener.py        Listener       ready work, lost locks, and commands of `client.workers`
registration.py    Registration   which queues it serves; warns of queues that no worker serves

where they are needed:
scheduler.py       Scheduler      recurring jobs: declares them, puts those that cron says are due
stable_name.py     NameLease      a stable name, and the jobs of a former process of that name
"""

from aioqless.handlers.results import Fail, Next, Retry, Snooze
from aioqless.worker.context import Part, WorkerContext
from aioqless.worker.settings import ExecutorLimits, ReconnectDelays, RecycleLimits, Settings
from aioqless.worker.shared import Shared
from aioqless.worker.subscriptions import Subscription
from aioqless.worker.worker import Worker

__all__ = [
    "ExecutorLimits",
    "Fail",
    "Next",
    "Part",
    "ReconnectDelays",
    "RecycleLimits",
    "Retry",
    "Settings",
    "Shared",
    "Snooze",
    "Subscription",
    "Worker",
    "WorkerContext",
]
