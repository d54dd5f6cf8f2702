"""aioqless: an asyncio worker framework on Redis, like Sidekiq, with the semantics of qless.

client/         what callers use: Client, Queue, Job, recurring jobs, workflows, events, config
handlers/       what modules declare: @job, middleware, resources, retry policy
worker/         pops jobs, runs handlers, stores outcomes
store/          calls the state machine: one Lua script per command
lua/            the state machine: one file per command, libraries in lua/lib
redis/          how Redis is reached: connection, endpoints, pub/sub, durability
testing/        for tests of handlers and of what they put
cli/            python -m aioqless
runtime/        logging, signals and tasks of every process
contrib/        extensions: dashboard, human tasks, Spark lake, private Redis, supervisor, ...

errors.py       every exception; the common ones are also exported here
validation.py   client-side validation of names and numbers
"""

import importlib
import typing

if typing.TYPE_CHECKING:
    from aioqless.client import Client, redis_url
    from aioqless.client.jid import Jid
    from aioqless.client.job import Failure, Job, JobRecord, JobState
    from aioqless.client.job_set import JobSet
    from aioqless.client.new_job import NewJob
    from aioqless.client.put_options import Fair, Key, Limit, Unique
    from aioqless.client.queue import Queue
    from aioqless.client.sync_client import SyncClient
    from aioqless.client.workflows import chain, group, in_queue
    from aioqless.errors import (
        AioqlessError,
        AlreadySignaled,
        HasDependents,
        InvalidData,
        JobExists,
        JobFailed,
        LockLost,
        NoResult,
        NoSuchJob,
        NotDurable,
        ProcessDied,
        PutManyError,
        QueueFull,
        ScriptError,
        SetClosed,
        WrongState,
    )
    from aioqless.handlers import (
        CallNext,
        Handler,
        Inject,
        RetryPolicy,
        bulk_job,
        exponential,
        fixed,
        job,
        lifespan,
        middleware,
        on_finish,
        on_lag,
        resource,
    )
    from aioqless.redis.durability import Durability
    from aioqless.worker import (
        Fail,
        Next,
        Parked,
        ReconnectDelays,
        Retry,
        Settings,
        Snooze,
        Subscription,
        Throttled,
        Worker,
    )

# The public names. Linters and type checkers compare them with the imports above.
__all__ = [
    "AioqlessError",
    "AlreadySignaled",
    "CallNext",
    "Client",
    "Durability",
    "Fail",
    "Failure",
    "Fair",
    "Handler",
    "HasDependents",
    "Inject",
    "InvalidData",
    "Jid",
    "Job",
    "JobExists",
    "JobFailed",
    "JobRecord",
    "JobSet",
    "JobState",
    "Key",
    "Limit",
    "LockLost",
    "NewJob",
    "Next",
    "NoResult",
    "NoSuchJob",
    "NotDurable",
    "Parked",
    "ProcessDied",
    "PutManyError",
    "Queue",
    "QueueFull",
    "ReconnectDelays",
    "Retry",
    "RetryPolicy",
    "ScriptError",
    "SetClosed",
    "Settings",
    "Snooze",
    "Subscription",
    "SyncClient",
    "Throttled",
    "Unique",
    "Worker",
    "WrongState",
    "bulk_job",
    "chain",
    "exponential",
    "fixed",
    "group",
    "in_queue",
    "job",
    "lifespan",
    "middleware",
    "on_finish",
    "on_lag",
    "redis_url",
    "resource",
]

__version__ = "0.1.0"

# Where they are, those that are imported fastest first. A module is imported when the first name of
# it is used, so that command-line programs start fast.
_HOMES = (
    *(
        "errors",
        "client",
        "client.jid",
        "client.job",
        "client.job_set",
        "client.new_job",
        "client.put_options",
        "client.queue",
        "client.sync_client",
        "client.workflows",
    ),
    *("redis.durability", "handlers", "worker"),
)

if not typing.TYPE_CHECKING:  # type checkers would accept any name

    def __getattr__(name: str) -> object:
        if name in __all__:
            for home in _HOMES:
                module = importlib.import_module(f"{__name__}.{home}")
                if name in getattr(module, "__all__", vars(module)):
                    value = globals()[name] = getattr(module, name)
                    return value
        raise importlib.import_module(f"{__name__}.hints").no_export(name)

    def __dir__() -> list[str]:
        return [*__all__, *(name for name in globals() if name.startswith("__"))]
