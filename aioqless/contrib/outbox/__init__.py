"""Transactional outbox: jobs that are put when a transaction of SQLAlchemy commits."""

from aioqless.contrib.outbox.outbox import Outbox, Relay

__all__ = ["Outbox", "Relay"]
