"""Putting jobs: options, checks, and the one route to Redis.

options.py      PutOptions     the options of put, of recurring jobs and of `@job`, each declared once
constraints.py                 uniqueness, concurrency limit and rate limit: checked and encoded
new_job.py      NewJob         a job to be put; PreparedJob is what the scripts take
sender.py       PutSender      sends prepared jobs, in batches and with backpressure
"""

from aioqless.client.put.new_job import Klass, NewJob, PreparedJob
from aioqless.client.put.options import (
    ConstraintOptions,
    OnFailed,
    PutOptions,
    RecurOptions,
    ScheduleOptions,
)
from aioqless.client.put.sender import Backpressure, PutSender

__all__ = [
    "Backpressure",
    "ConstraintOptions",
    "Klass",
    "NewJob",
    "OnFailed",
    "PreparedJob",
    "PutOptions",
    "PutSender",
    "RecurOptions",
    "ScheduleOptions",
]
