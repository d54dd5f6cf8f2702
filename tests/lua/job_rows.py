"""The fields of the jobs that a pop returns."""

from __future__ import annotations

import re
from functools import cache

from aioqless.lua import read_script


@cache
def row_fields() -> tuple[str, ...]:
    """Return them in their order, as lib/facts/job_row.lua has them."""
    text = read_script("lib/facts/job_row.lua")
    row = re.search(r"^local ROW = \{(.*?)^\}", text, re.M | re.S)
    assert row is not None
    return tuple(re.findall(r"'([\w-]+)'", row[1]))
