"""aioqless: an asyncio worker framework on Redis, in the manner of sidekiq, with the queue semantics of qless.

Redis holds the truth and Lua changes it. The map of the code, from the ground up.

The state machine:
    lua/            one file per command, libraries in lua/lib
    header.py       a command's signature
    spelling.py     keys, written out where scripts use them
    compose.py      builds a script from a header, a body, and the library functions they reach

The way to it:
    connection.py   one connection that all callers share
    calls.py        lays a command out to be sent, and reads its reply
    scripts.py      sends commands, again where that is needed
    pubsub.py       events as they happen
    errors.py       what can go wrong
    log.py          what is logged
    embedded/       a Redis when there is none

What a job is:
    names.py        what may be a name or a number
    data.py         a job's data as JSON
    terms.py        uniqueness, limits and rates of jobs
    record.py       what Redis keeps of a job
    reading.py      a job as it was read
    jobs.py         Job: that, and the verbs that change it
    following.py    what Job offers to those who follow one
    followers.py    who waits for the end of a job
    reports.py      progress on its way to Redis
    scratch.py      a directory for the time of one block

How jobs come in:
    puts.py         NewJob, and how jobs travel in
    flows.py        chain, group: jobs that depend on each other
    recurring.py    RecurringJob
    schedules.py    when a recurring job's instances come
    cron.py         which times a cron expression means
    queue.py        Queue
    config.py       configuration shared through Redis
    client/         Client, and its doors to all of these
    blocking.py     Client for code without an event loop
    outbox.py       jobs that are put when a transaction of SQLAlchemy is committed
    intake.py       jobs in the format of sidekiq, exq and resque

How jobs are done:
    handlers/       @job and what surrounds it: what modules declare for workers
    retrying.py     when a job that raised runs again by itself
    worker/         pops jobs, calls handlers, stores what they came to
    extras/         what other tools hear of jobs
    testing/        for tests of handlers and of what they put

What is run:
    cli/            python -m aioqless
    supervisor/     several processes, and one to look after them
    sandbox.py      a directory of its own for each process
    health.py       whether a process is alive and ready, over HTTP
"""

from aioqless.client import Client, redis_url
from aioqless.errors import (
    AioqlessError,
    AlreadyThere,
    DuplicateKlass,
    HasDependents,
    InvalidArgument,
    InvalidData,
    JobFailed,
    LockLost,
    NameTaken,
    NoResult,
    NoSuchJob,
    NoSuchWorker,
    NotObeyed,
    ProcessDied,
    QueueFull,
    ScriptError,
    UnknownKlass,
    WrongState,
)
from aioqless.flows import Chain, Flow, Group, Placed, at, chain, group
from aioqless.handlers import GIVEN, Handler, around, job, on, on_lag, resource
from aioqless.jobs import Job
from aioqless.pubsub import Event
from aioqless.puts import NewJob
from aioqless.queue import Queue
from aioqless.record import JobState, Progress
from aioqless.recurring import RecurringJob
from aioqless.worker import Fail, Next, Retry, Settings, Subscription, Worker

__all__ = [
    "GIVEN",
    "AioqlessError",
    "AlreadyThere",
    "Chain",
    "Client",
    "DuplicateKlass",
    "Event",
    "Fail",
    "Flow",
    "Group",
    "Handler",
    "HasDependents",
    "InvalidArgument",
    "InvalidData",
    "Job",
    "JobFailed",
    "JobState",
    "LockLost",
    "NameTaken",
    "NewJob",
    "Next",
    "NoResult",
    "NoSuchJob",
    "NoSuchWorker",
    "NotObeyed",
    "Placed",
    "ProcessDied",
    "Progress",
    "Queue",
    "QueueFull",
    "RecurringJob",
    "Retry",
    "ScriptError",
    "Settings",
    "Subscription",
    "UnknownKlass",
    "Worker",
    "WrongState",
    "around",
    "at",
    "chain",
    "group",
    "job",
    "on",
    "on_lag",
    "redis_url",
    "resource",
]

__version__ = "0.1.0"
