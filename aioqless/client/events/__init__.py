"""What happens to jobs, as it happens: `async for event in client.events(queue="mail")`.

kinds.py    a type for each kind of event
wanted.py   filters, and what must be remembered for them
stream.py   listening through outages, and saying what may have been missed
door.py     Events, as `client.events`
"""

from aioqless.client.events.api import Events
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
    "Events",
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
