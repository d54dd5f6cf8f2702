"""What modules declare for workers: handlers, and what surrounds them.

options.py      JobOptions     what @job can be told
takes.py        Takes, Inject   what a function takes of a job's data, and of the worker's resources
handler.py      Handler        a function and all that is said about it
recurs.py       Recurs         when a job comes by itself
declare.py      job            makes a handler of a function; stores nothing
resources.py    resource       what a worker opens and hands to handlers
surround.py     around, on     what wraps each run, and who is told how it ended
lag.py          on_lag         who is told when a queue is late
collect.py      declared       reads all these from modules when a worker starts
table.py        Handlers       the table from klass to handler

A klass is looked up in that table alone: nothing is ever imported because Redis named it.
"""

from aioqless.handlers.decorator import job
from aioqless.handlers.discovery import Source, declared
from aioqless.handlers.handler import Handler
from aioqless.handlers.lag_alerts import on_lag
from aioqless.handlers.middleware_stack import (
    ENDS,
    Call,
    Hook,
    Middleware,
    MiddlewareStack,
    middleware,
    on_finish,
)
from aioqless.handlers.options import JobOptions
from aioqless.handlers.registry import Handlers
from aioqless.handlers.resources import Resource, Resources, resource
from aioqless.handlers.signature import Inject

__all__ = [
    "ENDS",
    "Call",
    "Handler",
    "Handlers",
    "Hook",
    "Inject",
    "JobOptions",
    "Middleware",
    "MiddlewareStack",
    "Resource",
    "Resources",
    "Source",
    "declared",
    "job",
    "middleware",
    "on_finish",
    "on_lag",
    "resource",
]
