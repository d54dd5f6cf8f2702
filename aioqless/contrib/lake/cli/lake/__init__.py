"""The commands of `aioqless lake`."""

from . import archive, maintenance, put, tables

__all__ = ["archive", "maintenance", "put", "tables"]
