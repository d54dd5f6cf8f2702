"""Entries of the archive stream, to which the scripts append each job that ends, as records.

`aioqless.client.archive` has the state of the stream.
"""

from aioqless.contrib.archive.entry import (
    ENDS,
    VERSION,
    Event,
    Run,
    Unreadable,
    parse,
    parse_raw,
    to_micros,
)

__all__ = [
    "ENDS",
    "VERSION",
    "Event",
    "Run",
    "Unreadable",
    "parse",
    "parse_raw",
    "to_micros",
]
