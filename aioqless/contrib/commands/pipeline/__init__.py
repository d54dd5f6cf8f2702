"""The commands of `aioqless pipeline`."""

from aioqless.contrib.commands.pipeline import archive, put, tables, upkeep

__all__ = ["archive", "put", "tables", "upkeep"]
