"""The commands of `aioqless lake`."""

from aioqless.contrib.commands.lake import archive, put, tables

__all__ = ["archive", "put", "tables"]
