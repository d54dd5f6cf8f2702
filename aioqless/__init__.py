"""aioqless: an asyncio worker framework on Redis, in the manner of sidekiq, with the queue semantics of qless.

Redis holds the truth and Lua changes it. The map of the code, from the ground up.

The state machine, and the way to it:
    lua/            one file per command, libraries in lua/lib
    replies.py      error replies of Redis: the exception for each, and which say "not now"
    wire.py         one life of a connection: requests out, replies in
    servers/        where Redis is now: one server, sentinels, a Cluster
    connection.py   one connection that all callers share
    acl.py          users of Redis that may do what their part needs
    durability.py   writes that are answered when replicas have them
    scripts/        builds scripts from the Lua; sends them, again where that is needed
    pubsub.py       messages as Redis publishes them
    events/         what happens to jobs, as it happens: typed, filtered, on and on
    errors.py       what can go wrong
    log.py          what is logged
    output.py       standard output of a process that serves: writing never raises
    happening.py    waiting for an event, but only so long
    signals.py      signal handlers of our own processes, which what they fork doesn't inherit
    embedded/       a Redis when there is none

What a job is:
    names.py        what may be a name or a number
    data.py         a job's data as JSON
    sealing.py      data that only those who have a key can read, or write
    jobs/           Job: what was read of one, the verbs that change it, how to follow it

How jobs come in:
    puts/           NewJob: what is put, on which terms, and how it travels
    flows.py        chain, group: jobs that depend on each other
    recurring/      RecurringJob: intervals, cron expressions, templates
    clearing.py     a queue is emptied
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
    browsers/       what is known of browsers: their sessions, where a request comes from
    people/         people as workers: reservations for a limited time
    extras/         what other tools hear of jobs
    testing/        for tests of handlers and of what they put

What stays of jobs:
    archive/        what ended: the stream that the scripts append it to, and what reads it
    pipeline/       from there into a lake of Parquet files, and tables and a report of it, on Spark

What is run:
    cli/            python -m aioqless
    processes/      several workers: who looks after them, where each works, how it tells that it is well
    web/            the dashboard
"""

import importlib
import typing

if typing.TYPE_CHECKING:
    from aioqless.clearing import Cleared
    from aioqless.client import Client, redis_url
    from aioqless.durability import Durability
    from aioqless.errors import (
        AioqlessError,
        AlreadyThere,
        BrokenSeal,
        DuplicateKlass,
        HasDependents,
        InvalidArgument,
        InvalidData,
        JobFailed,
        LockLost,
        MissingExtra,
        NameTaken,
        NoResult,
        NoSuchJob,
        NoSuchWorker,
        NotDurable,
        NotObeyed,
        ProcessDied,
        QueueFull,
        ScriptError,
        UnknownKlass,
        WrongState,
    )
    from aioqless.flows import Chain, Flow, Group, Placed, at, chain, group
    from aioqless.handlers import GIVEN, Handler, around, job, on, on_lag, resource
    from aioqless.jobs import Job, JobState, Progress
    from aioqless.pubsub import Event
    from aioqless.puts import NewJob
    from aioqless.queue import Queue
    from aioqless.recurring import RecurringJob
    from aioqless.sealing import Seal
    from aioqless.worker import Fail, Next, Retry, Settings, Subscription, Worker

__all__ = [
    "GIVEN",
    "AioqlessError",
    "AlreadyThere",
    "BrokenSeal",
    "Chain",
    "Cleared",
    "Client",
    "DuplicateKlass",
    "Durability",
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
    "MissingExtra",
    "NameTaken",
    "NewJob",
    "Next",
    "NoResult",
    "NoSuchJob",
    "NoSuchWorker",
    "NotDurable",
    "NotObeyed",
    "Placed",
    "ProcessDied",
    "Progress",
    "Queue",
    "QueueFull",
    "RecurringJob",
    "Retry",
    "ScriptError",
    "Seal",
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

# Each part is imported when the first of its names is used: a command line waits for no more than it needs. The others are errors.
_HOMES = {
    "clearing": "Cleared",
    "client": "Client redis_url",
    "durability": "Durability",
    "flows": "Chain Flow Group Placed at chain group",
    "handlers": "GIVEN Handler around job on on_lag resource",
    "jobs": "Job JobState Progress",
    "pubsub": "Event",
    "puts": "NewJob",
    "queue": "Queue",
    "recurring": "RecurringJob",
    "sealing": "Seal",
    "worker": "Fail Next Retry Settings Subscription Worker",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}

if not typing.TYPE_CHECKING:  # a checker would take any name for one of ours

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_HOME.get(name, 'errors')}"), name)
        return value

    def __dir__() -> list[str]:
        return [*globals(), *__all__]
