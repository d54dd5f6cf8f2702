"""The archive: a stream to which the scripts append each job that ends; this package reads it.

entry.py    Event, Run   an entry as a typed record
stream.py   Archive      state of the stream, trimming, jobs that other clients ended
"""

from aioqless.client.archive.entry import (
    ENDS,
    VERSION,
    Event,
    Run,
    Unreadable,
    parse,
    parse_raw,
    to_micros,
)
from aioqless.client.archive.stream import Archive, ArchiveState, SweepResult

__all__ = [
    "ENDS",
    "VERSION",
    "Archive",
    "ArchiveState",
    "Event",
    "Run",
    "SweepResult",
    "Unreadable",
    "parse",
    "parse_raw",
    "to_micros",
]
