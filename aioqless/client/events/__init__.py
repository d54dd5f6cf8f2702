"""Live events: `async for event in client.events(queue="mail")`.

types.py    a type for each kind of event
filters.py  selects the events that a caller wants
stream.py   listens through outages, and reports what may have been missed
"""

from aioqless.client.events.stream import Stream
from aioqless.client.events.types import (
    KINDS,
    Advanced,
    AnyEvent,
    Canceled,
    Completed,
    ConfigSet,
    ConfigUnset,
    Failed,
    JobEvent,
    LockLost,
    Missed,
    Other,
    Popped,
    Progressed,
    Put,
    Stalled,
    Tracked,
    Untracked,
)

__all__ = [
    "KINDS",
    "Advanced",
    "AnyEvent",
    "Canceled",
    "Completed",
    "ConfigSet",
    "ConfigUnset",
    "Failed",
    "JobEvent",
    "LockLost",
    "Missed",
    "Other",
    "Popped",
    "Progressed",
    "Put",
    "Stalled",
    "Stream",
    "Tracked",
    "Untracked",
]
