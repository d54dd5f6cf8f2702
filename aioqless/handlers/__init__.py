"""What modules declare for workers: handlers, and the middleware, hooks and resources around them.

job_options.py       JobOptions             the options of @job and @bulk_job
signature.py         Takes, Inject          what a function takes: data, and injected resources
handler.py           Handler                a function and its options
recurrence.py        Recurrence             the schedule of a recurring job
retry_policy.py      RetryPolicy            which errors are retried, and after how long
decorator.py         job, bulk_job          makes a handler of a function; stores nothing
resources.py         resource, lifespan     what a worker opens and injects, and background tasks
put_call.py          PutCall                what `handler.put` returns, to be awaited
middleware_stack.py  middleware, on_finish  what wraps each run, and hooks for its end
lag_alerts.py        on_lag                 hooks for queues that lag behind
discovery.py         declared               collects all these from modules when a worker starts
registry.py          Handlers               the table from klass to handler

A klass is looked up in that table alone: nothing is ever imported because Redis named it.
"""

from aioqless.handlers.decorator import bulk_job, job
from aioqless.handlers.discovery import Source, declared
from aioqless.handlers.handler import Handler
from aioqless.handlers.job_options import BulkJobOptions, JobOptions
from aioqless.handlers.lag_alerts import on_lag
from aioqless.handlers.middleware_stack import (
    ENDS,
    CallNext,
    Hook,
    Middleware,
    MiddlewareStack,
    middleware,
    on_finish,
)
from aioqless.handlers.registry import Handlers
from aioqless.handlers.resources import Resource, Resources, lifespan, resource
from aioqless.handlers.retry_policy import RetryPolicy, exponential, fixed
from aioqless.handlers.signature import Inject

__all__ = [
    "ENDS",
    "BulkJobOptions",
    "CallNext",
    "Handler",
    "Handlers",
    "Hook",
    "Inject",
    "JobOptions",
    "Middleware",
    "MiddlewareStack",
    "Resource",
    "Resources",
    "RetryPolicy",
    "Source",
    "bulk_job",
    "declared",
    "exponential",
    "fixed",
    "job",
    "lifespan",
    "middleware",
    "on_finish",
    "on_lag",
    "resource",
]
