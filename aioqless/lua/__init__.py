"""The scripts of the state machine, and the values that they define for Python as well."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

LUA = files(__name__)


def constant(name: str) -> int:
    """Return a number of lib/constants.lua. Raises KeyError."""
    return int(constants()[name])


def exhausted_group(queue: str) -> str:
    """Return the failure group of a queue's jobs that have no retries left."""
    return constants()["EXHAUSTED_GROUP"].strip("'") + queue


@cache
def constants() -> dict[str, str]:
    """Return the values of lib/constants.lua by name, as they are written there."""
    text = (LUA / "lib" / "constants.lua").read_text("utf-8")
    return dict(re.findall(r"^local (\w+) = (\d+|'[^']*')", text, re.M))


@cache
def row_fields() -> tuple[str, ...]:
    """Return the fields of a popped job in their order, as lib/job_row.lua has them."""
    text = (LUA / "lib" / "job_row.lua").read_text("utf-8")
    row = re.search(r"^local ROW = \{(.*?)^\}", text, re.M | re.S)
    assert row is not None
    return tuple(re.findall(r"'([\w-]+)'", row[1]))
