"""The archive: each job that ends is appended to a stream by the scripts themselves; here is what
reads it. No Spark is needed for that.

entry.py    an entry as a typed record
stream.py   Archive: state of the stream, trimming, jobs that other clients ended
"""

from aioqless.client.archive.entry import (
    ENDS,
    VERSION,
    Event,
    Run,
    Unreadable,
    micros,
    parse,
    parse_raw,
)
from aioqless.client.archive.stream import Archive, ArchiveState, Swept

__all__ = [
    "ENDS",
    "VERSION",
    "Archive",
    "ArchiveState",
    "Event",
    "Run",
    "Swept",
    "Unreadable",
    "micros",
    "parse",
    "parse_raw",
]
