"""The commands of `aioqless pipeline`."""

from aioqless.contrib.commands.pipeline import archive, put, tables

__all__ = ["archive", "put", "tables"]
