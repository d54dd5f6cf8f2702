"""Client: one connection to one namespace, and its doors: `queue(name)`, `jobs`, `workers`,
`config`, `events`."""

from aioqless.client.client import Client, worker_name
from aioqless.client.url import redis_url
from aioqless.redis.connection import UNAVAILABLE, Command, CommandConnection

# The exceptions of redis-py and of ours that mean that Redis is unavailable now: nothing is wrong
# with the call, which may be sent again later. For `except REDIS_UNAVAILABLE`.
REDIS_UNAVAILABLE = UNAVAILABLE

__all__ = [
    "REDIS_UNAVAILABLE",
    "Client",
    "Command",
    "CommandConnection",
    "redis_url",
    "worker_name",
]
