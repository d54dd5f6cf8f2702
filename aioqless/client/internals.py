"""Internals: the parts of a connected client, for workers and extensions."""

from __future__ import annotations

from dataclasses import dataclass

from redis.asyncio import Redis

from aioqless.client.access import RedisAccess
from aioqless.client.config import Config
from aioqless.client.job.backend import JobBackend
from aioqless.client.jobs import Jobs
from aioqless.client.put_sender import PutSender
from aioqless.client.recurring import RecurringJobs
from aioqless.client.workers import Workers
from aioqless.redis.pubsub import Subscriber
from aioqless.store import ScriptStore


@dataclass(frozen=True, kw_only=True)
class Internals:
    """The parts of a connected client, for workers and extensions; applications need none.

    Attributes:
        access: What makes its connections.
        store: The commands of the state machine.
        backend: The collaborators that its jobs and queues share.
        sender: Encodes jobs and sends them.
    """

    access: RedisAccess
    redis: Redis
    store: ScriptStore
    backend: JobBackend
    sender: PutSender
    jobs: Jobs
    recurring: RecurringJobs
    workers: Workers
    config: Config
    subscriber: Subscriber
