"""The commands of `aioqless lake`."""

from aioqless.contrib.commands.lake import archive, put, status, tables, upkeep

__all__ = ["archive", "put", "status", "tables", "upkeep"]
