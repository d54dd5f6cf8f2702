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
    from aioqless.client.job import Job, JobState
    from aioqless.client.put import NewJob
    from aioqless.client.queue import Queue
    from aioqless.client.workflows import chain, group, in_queue
    from aioqless.errors import (
        AioqlessError,
        InvalidData,
        JobFailed,
        LockLost,
        NoSuchJob,
        QueueFull,
        WrongState,
    )
    from aioqless.handlers import Handler, Inject, job, middleware, on_finish, on_lag, resource
    from aioqless.redis.durability import Durability
    from aioqless.worker import Fail, Next, Retry, Settings, Snooze, Subscription, Worker

__all__ = [
    "AioqlessError",
    "Client",
    "Durability",
    "Fail",
    "Handler",
    "Inject",
    "InvalidData",
    "Job",
    "JobFailed",
    "JobState",
    "LockLost",
    "NewJob",
    "Next",
    "NoSuchJob",
    "Queue",
    "QueueFull",
    "Retry",
    "Settings",
    "Snooze",
    "Subscription",
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

# A module is imported when one of its names is used first, so that command-line programs start
# fast. Names that are not listed here are errors.
_HOMES = {
    "client": "Client redis_url",
    "client.job": "Job JobState",
    "client.put": "NewJob",
    "client.queue": "Queue",
    "client.workflows": "chain group in_queue",
    "handlers": "Handler Inject job middleware on_finish on_lag resource",
    "redis.durability": "Durability",
    "worker": "Fail Next Retry Settings Snooze Subscription Worker",
}
# What other libraries call theirs.
_OWN = {
    "Cron": "`@job(cron=...)`",
    "Depends": "`aioqless.Inject`",
    "RateLimit": "`@job(rate_limit=...)`",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}

if not typing.TYPE_CHECKING:  # type checkers would accept any name

    def __getattr__(name: str) -> object:
        if name not in __all__:
            text = f"module {__name__!r} has no attribute {name!r}"
            errors = importlib.import_module(f"{__name__}.errors")
            if name[0].isupper() and hasattr(errors, name):
                text += f": write `from aioqless.errors import {name}`"
            elif name in _OWN:
                text += f": write {_OWN[name]}"
            raise AttributeError(text)
        value = globals()[name] = getattr(
            importlib.import_module(f"{__name__}.{_HOME.get(name, 'errors')}"), name
        )
        return value

    def __dir__() -> list[str]:
        return [*globals(), *__all__]
