"""The commands of `aioqless lake`."""

from . import archive, put, tables, upkeep

__all__ = ["archive", "put", "tables", "upkeep"]
