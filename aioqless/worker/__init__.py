"""The worker: its parts, each with the state that it alone changes.

worker.py          Worker         controls what runs jobs; Consumer: its parts, of one namespace
settings.py        Settings       how one worker behaves
context.py         WorkerContext  what parts have in common; Lifecycle: queues and end; outages
shared.py          Shared         handlers, slots, executors: what several consumers may share
running_jobs.py    Run, RunningJobs   one attempt of one job; the table of all of them

a job's way:
poller.py          Poller         decides when to pop, and how many jobs
subscriptions.py   Subscriptions  which queues, with which limits, in which order
runner.py          Runner         starts each job, calls its handler, sees it through
run_counts.py      RunCounts      counts runs, for beats and exporters
thread_pool.py     ThreadPool     runs plain functions; processes are an extension
outcome.py                        `outcome_of` decides what to store, without any I/O
failures.py                       groups and words errors
outcome_writer.py  OutcomeWriter  stores outcomes, however long Redis is unavailable

while it runs:
lock_renewer.py    LockRenewer    renews locks, from a thread with its own loop and connection
watchdog.py        LoopWatchdog   logs what blocks the event loop; stack dumps
parts/             Listener, Scheduler, Presence, ...   what runs beside the jobs
"""

from aioqless.handlers.results import Fail, Next, Parked, Retry, Snooze, Throttled
from aioqless.worker.context import Part, WorkerContext
from aioqless.worker.run_counts import EndedRun, RunCounts
from aioqless.worker.settings import ReconnectDelays, Settings
from aioqless.worker.subscriptions import Subscription
from aioqless.worker.worker import AnyWorker, Worker

__all__ = [
    "AnyWorker",
    "EndedRun",
    "Fail",
    "Next",
    "Parked",
    "Part",
    "ReconnectDelays",
    "Retry",
    "RunCounts",
    "Settings",
    "Snooze",
    "Subscription",
    "Throttled",
    "Worker",
    "WorkerContext",
]
