"""Client: one connection to one namespace, and its doors: `queue(name)`, `jobs`, `workers`,
`config`, `events`."""

from aioqless.client.client import Client, worker_name
from aioqless.client.url import redis_url
from aioqless.redis.connection import REDIS_UNAVAILABLE, Command, CommandConnection

__all__ = [
    "REDIS_UNAVAILABLE",
    "Client",
    "Command",
    "CommandConnection",
    "redis_url",
    "worker_name",
]
