"""Transactional outbox: jobs that are put when a transaction of a database commits.

outbox.py  the table and its relay by SQLAlchemy; needs `aioqless[sqlalchemy]`
relay.py   puts the jobs of a table, whichever library reads it
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aioqless.contrib.outbox.outbox import Outbox, Relay

__all__ = ["Outbox", "Relay"]

if not TYPE_CHECKING:  # type checkers would accept any name

    def __getattr__(name: str) -> object:  # Django's outbox needs no SQLAlchemy
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.outbox"), name)
