"""aioqless: an asyncio worker framework on Redis, like Sidekiq, with the semantics of qless.

client/         what callers use: Client, Queue, Job, recurring jobs, workflows, events, config
handlers/       what modules declare: @job, middleware, resources, retry policy
worker/         pops jobs, runs handlers, stores outcomes
store/          calls the state machine: one Lua script per command
lua/            the state machine: one file per command, libraries in lua/lib
redis/          how Redis is reached: connection, endpoints, pub/sub, durability
testing/        for tests of handlers and of what they put
cli/            python -m aioqless
contrib/        extensions: dashboard, human tasks, Spark lake, private Redis, supervisor, ...

errors.py       every exception that callers may meet
log/            structured logging, which never raises
validation.py   client-side validation of names and numbers
waiting.py      bounded waits for events and tasks
signals.py      signal handlers of our own processes
"""

import importlib
import typing

if typing.TYPE_CHECKING:
    from aioqless.client import Client, redis_url
    from aioqless.client.clearing import Cleared
    from aioqless.client.job import Job, JobState, Progress
    from aioqless.client.put import NewJob
    from aioqless.client.queue import Queue
    from aioqless.client.recurring import RecurringJob
    from aioqless.client.workflows import Chain, Flow, Group, Placed, chain, group, in_queue
    from aioqless.errors import (
        AioqlessError,
        AlreadyThere,
        DecryptionError,
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
    from aioqless.handlers import Handler, Inject, job, middleware, on_finish, on_lag, resource
    from aioqless.redis.durability import Durability
    from aioqless.redis.pubsub import Event
    from aioqless.worker import Fail, Next, Retry, Settings, Subscription, Worker

__all__ = [
    "AioqlessError",
    "AlreadyThere",
    "Chain",
    "Cleared",
    "Client",
    "DecryptionError",
    "DuplicateKlass",
    "Durability",
    "Event",
    "Fail",
    "Flow",
    "Group",
    "Handler",
    "HasDependents",
    "Inject",
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
    "Settings",
    "Subscription",
    "UnknownKlass",
    "Worker",
    "WrongState",
    "chain",
    "group",
    "in_queue",
    "job",
    "middleware",
    "on_finish",
    "on_lag",
    "redis_url",
    "resource",
]

__version__ = "0.1.0"

# Each part is imported when the first of its names is used: a command line waits for no more than
# it needs. The others are errors.
_HOMES = {
    "client": "Client redis_url",
    "client.clearing": "Cleared",
    "client.job": "Job JobState Progress",
    "client.put": "NewJob",
    "client.queue": "Queue",
    "client.recurring": "RecurringJob",
    "client.workflows": "Chain Flow Group Placed chain group in_queue",
    "handlers": "Handler Inject job middleware on_finish on_lag resource",
    "redis.durability": "Durability",
    "redis.pubsub": "Event",
    "worker": "Fail Next Retry Settings Subscription Worker",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}

if not typing.TYPE_CHECKING:  # a checker would take any name for one of ours

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(
            importlib.import_module(f"{__name__}.{_HOME.get(name, 'errors')}"), name
        )
        return value

    def __dir__() -> list[str]:
        return [*globals(), *__all__]
