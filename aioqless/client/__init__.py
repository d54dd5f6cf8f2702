"""Client: one connection to one namespace, and its doors: `queue(name)`, `jobs`, `workers`, `config`, `events`."""

from aioqless.client.client import Client, worker_name

__all__ = ["Client", "worker_name"]
