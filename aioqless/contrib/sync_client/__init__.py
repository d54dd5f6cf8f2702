"""A client for code without an event loop."""

from aioqless.contrib.sync_client.client import Client

__all__ = ["Client"]
