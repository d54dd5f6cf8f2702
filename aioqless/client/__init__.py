"""Client: one connection to one namespace, and its doors: `queue(name)`, `jobs`, `workers`, `config`, `events`."""

from aioqless.client.address import redis_url
from aioqless.client.client import Client, worker_name

__all__ = ["Client", "redis_url", "worker_name"]
