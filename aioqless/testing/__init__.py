"""Test handlers and what they put.

perform.py         perform, perform_bulk   one handler, without Redis
memory_client.py   MemoryClient, put_jobs   what was put, without Redis
drain.py           drain          all ready jobs of a namespace, by a real worker on a real Redis
clock.py           Clock          a clock that stands still until it is moved
event_recorder.py  record_events  wait for events instead of sleeping
server.py          server         a Redis that ends with the tests
isolation.py       isolate        all clients use that Redis
plugin.py                         pytest fixtures: aioqless_url, aioqless_redis, aioqless_clock,
                                  aioqless_client, aioqless_memory_client
"""

from aioqless.testing.clock import Clock
from aioqless.testing.drain import drain
from aioqless.testing.event_recorder import EventRecorder, record_events
from aioqless.testing.isolation import isolate
from aioqless.testing.memory_client import MemoryClient, PutJob, put_jobs
from aioqless.testing.perform import Performed, perform, perform_bulk
from aioqless.testing.server import server
from aioqless.worker.outcome import RunCompleted, RunFailed, RunReleased, RunRetried

__all__ = [
    "Clock",
    "EventRecorder",
    "MemoryClient",
    "Performed",
    "PutJob",
    "RunCompleted",
    "RunFailed",
    "RunReleased",
    "RunRetried",
    "drain",
    "isolate",
    "perform",
    "perform_bulk",
    "put_jobs",
    "record_events",
    "server",
]
