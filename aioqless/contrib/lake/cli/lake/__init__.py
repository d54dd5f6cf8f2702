"""The commands of `aioqless lake`."""

from . import archive, put, status, tables, upkeep

__all__ = ["archive", "put", "status", "tables", "upkeep"]
