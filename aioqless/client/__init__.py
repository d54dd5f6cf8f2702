"""Client: one connection to one namespace, and its doors: `queue(name)`, `jobs`, `workers`,
`config`, `events`."""

from aioqless.client.client import Client, worker_name
from aioqless.client.url import redis_url

__all__ = ["Client", "redis_url", "worker_name"]
