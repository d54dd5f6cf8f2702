"""Handlers: functions that perform jobs.

options.py      JobOptions     what @job can be told
takes.py        Takes          what a function takes of a job's data
handler.py      Handler        a function and all that is said about it
declare.py      job            makes a handler of a function; stores nothing
table.py        Handlers       the table from klass to handler, read from modules when a worker starts

A klass is looked up in that table alone: nothing is ever imported because Redis named it.
"""

from aioqless.handlers.declare import job
from aioqless.handlers.handler import Handler
from aioqless.handlers.options import JobOptions
from aioqless.handlers.table import Handlers

__all__ = ["Handler", "Handlers", "JobOptions", "job"]
