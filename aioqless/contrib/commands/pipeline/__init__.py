"""The commands of `aioqless pipeline`."""

from aioqless.contrib.commands.pipeline import archive, put, status, tables, upkeep

__all__ = ["archive", "put", "status", "tables", "upkeep"]
